"""Characters and motion without physics: models, clips, libraries of clips, importers."""
