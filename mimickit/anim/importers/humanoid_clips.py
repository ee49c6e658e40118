"""Which DeepMimic clips ship, and how each is mended."""

from mimickit.anim.importers.deepmimic_json import ClipOptions
from mimickit.anim.motion import LoopMode

_CLAMP, _WRAP = LoopMode.CLAMP, LoopMode.WRAP

# Walk and run are half a gait and its mirror image, which don't quite meet: hence the jump in the middle.
HUMANOID_CLIPS: dict[str, ClipOptions] = {
    "backflip": ClipOptions(_CLAMP),
    "cartwheel": ClipOptions(_CLAMP),
    "crawl": ClipOptions(_WRAP, gaps=((74, 75), (171, 176)), blend=0.25),
    "dance_a": ClipOptions(_WRAP),
    "dance_b": ClipOptions(_WRAP),
    "getup_facedown": ClipOptions(_CLAMP),
    "getup_faceup": ClipOptions(_CLAMP),
    "jump": ClipOptions(_CLAMP),
    "kick": ClipOptions(_CLAMP),
    "punch": ClipOptions(_CLAMP),
    "roll": ClipOptions(_WRAP, smooth=0.05),
    "run": ClipOptions(_WRAP, gaps=((12, 12),), blend=0.15),
    "spin": ClipOptions(_CLAMP),
    "spinkick": ClipOptions(_CLAMP),
    "walk": ClipOptions(_WRAP, gaps=((19, 19),)),
}
