"""Adapters by name: what ``my_package.testing:make_queue`` on a command line stands for."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from conformance.answers import capabilities_of, members_missing, protocol_of
from conformance.backend import Factory, Spec
from conformance.clause import Options, Port
from conformance.instance import FixtureError
from conformance.lane import Lane, LaneLostError
from conformance.places import Places
from conformance.runner import UsageError
from conformance.stand import Stand
from conformance.wording import with_article

_OPEN_SECONDS: Final = 60.0


def load_specs(target: str, port: Port | None = None, declared: Iterable[str] = ()) -> list[Spec]:
    """The adapters that the target names, of one port if that is given.

    ``module:name``, or ``path/to/module.py:name``, is a Spec, a sequence of them, a generated test class, or a factory;
    ``module:name#adapter`` chooses one of several by name. A bare factory promises the capabilities in `declared`; its
    port, where it is not given, is found out by opening it once.
    """
    address, _, chosen = target.partition("#")
    found = _resolve(address)
    specs = _specs_of(found, address)
    if specs is None:
        if not callable(found):
            raise UsageError(f"{address} is neither a factory nor a Spec, a sequence of Specs, or a test class")
        return [_spec_of_factory(cast("Factory", found), address, port, tuple(declared))]
    if declared:
        raise UsageError(f"{address} declares its capabilities itself; leave --declare out")
    matching = [spec for spec in specs if (port is None or spec.port is port) and (not chosen or spec.name == chosen)]
    if not matching:
        known = ", ".join(f"{spec.name} ({spec.port.title})" for spec in specs)
        raise UsageError(f"{target} names no adapter of {address}; it has {known}")
    return matching


def _resolve(address: str) -> object:
    module_name, colon, attribute = address.partition(":")
    if not colon or not attribute:
        raise UsageError(f"{address!r} is no target; write package.module:name")
    module_name = _imported_from(module_name)
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise UsageError(f"there is no module {module_name!r} here") from error
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise UsageError(f"{module_name} has no {attribute}") from None
    return found


def _imported_from(module: str) -> str:
    """The name to import, once the directory that it is found from is on the search path.

    That is the present one, as with `python -m`, also where the command is started by its own name. A module that is
    named by its file is imported as pytest does by default: from the first directory that is no package.
    """
    directory, name = Path.cwd(), module
    if module.endswith(".py"):
        file = Path(module).resolve()
        if not file.is_file():
            raise UsageError(f"there is no file {module} here")
        directory, name = file.parent, file.stem
        while (directory / "__init__.py").is_file():
            directory, name = directory.parent, f"{directory.name}.{name}"
    for path in (str(directory), str(Path.cwd())):
        if path not in sys.path:
            sys.path.insert(0, path)
    return name


def _specs_of(found: object, address: str) -> list[Spec] | None:
    if isinstance(found, Spec):
        return [replace(found, location=address)]
    spec = getattr(found, "spec", None)
    if inspect.isclass(found) and isinstance(spec, Spec):
        return [replace(spec, location=address)]
    if (
        isinstance(found, list | tuple)
        and found
        and all(isinstance(each, Spec) for each in cast("list[object]", found))
    ):
        return [replace(each, location=f"{address}#{each.name}") for each in cast("list[Spec]", found)]
    return None


def _spec_of_factory(factory: Factory, address: str, port: Port | None, declared: tuple[str, ...]) -> Spec:
    found = port or _port_of(factory, address)
    known = {capability.__name__: capability for capability in capabilities_of(found)}
    for name in declared:
        if name not in known:
            raise UsageError(f"{name} is no capability of {found.title}; it has {', '.join(known)}")
    return Spec(
        port=found,
        factory=factory,
        capabilities=[known[name] for name in declared],
        declared=tuple(word for name in declared for word in ("--declare", name)),
        location=address,
    )


def _port_of(factory: Factory, address: str) -> Port:
    """The one port whose Protocol the opened adapter has."""
    adapter = _opened(factory, address)
    ports = [port for port in Port if not members_missing(adapter, protocol_of(port))]
    if len(ports) != 1:
        what = "several ports at once" if ports else "no port"
        yielded = with_article(type(adapter).__name__)
        raise UsageError(f"{address} yields {yielded}, which looks like {what}; say which with --port")
    return ports[0]


def _opened(factory: Factory, address: str) -> Any:
    lane = Lane()
    spec = Spec(port=Port.JOB_QUEUE, factory=factory, name=address)
    places = Places(spec, seed=0, dsn=None)
    place = places.place()

    deadline = time.monotonic() + _OPEN_SECONDS

    async def look() -> Any:
        stand = Stand(spec, place, Options(), lane.tasks)
        fixture = await stand.instance(0)
        await stand.close()
        return fixture.adapter

    try:
        return lane.call(look, lambda: deadline)
    except (FixtureError, LaneLostError) as error:
        raise UsageError(
            f"{address} could not be opened to find out its port: {error}; say which with --port"
        ) from error
    finally:
        lane.close(1.0)
        places.close()
