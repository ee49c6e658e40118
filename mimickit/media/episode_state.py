"""Episodes under way in a checkpoint: their figures, notes and media, the files of which stay where they are."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from mimickit.media.episode import Episode, EpisodeMedia
from mimickit.media.plain import from_plain, plain_items
from mimickit.media.store import MediaStore
from mimickit.media.types import MediaError

LOG = logging.getLogger("mimickit.media")
_MEDIA, _PARTS = "media", ("data", "facts", "info")  # the parts are dicts, of which what can be kept is kept


def pack_episode(
    episode: Episode, store: MediaStore, *, with_media: bool, warn: Callable[[str], None]
) -> dict[str, Any]:
    """Plain values for a checkpoint; entries of episode.data that can't be kept are left out, with a warning."""
    values = {field.name: getattr(episode, field.name) for field in fields(episode)}
    media = values.pop(_MEDIA)
    for part in _PARTS:
        values[part], lost = plain_items(values[part])
        for key, found in lost.items():
            warn(f"episode.{part}[{key!r}]: a checkpoint can't hold {found}; --resume will go on without it")
    packed, _ = plain_items(values)
    packed[_MEDIA] = {name: [store.pack(item) for item in items] for name, items in media.items() if with_media}
    return packed


def unpack_episode(
    packed: Mapping[str, Any], new_media: Callable[[int, int], EpisodeMedia], store: MediaStore
) -> Episode:
    """The episode that pack_episode() was given, but for media whose files are gone, which a warning names.

    Args:
        new_media: (environment, samples) -> where its media are kept.
    """
    values = from_plain({key: value for key, value in packed.items() if key != _MEDIA})
    episode = Episode(**values, media=new_media(values["env_index"], values["samples"]))
    for name, entries in packed[_MEDIA].items():
        items = []
        for entry in entries:
            try:
                items.append(store.unpack(name, entry))
            except MediaError as error:
                LOG.warning("an episode goes on without what was attached to it: %s", error)
        if items:
            episode.media.restore(name, items)
    return episode
