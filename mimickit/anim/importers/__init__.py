"""Foreign motion formats, one file each: python -m mimickit.anim.importers converts."""
