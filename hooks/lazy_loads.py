"""Label the statements that an object mapper executes when an attribute is read.

The label names the class and the attribute. Object mappers need no other hook: their statements
reach the database through a driver.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.errors import DriverError
from queryprof.hooks.reading_places import reading_place
from queryprof.hooks.replacing import Replacements
from queryprof.operations import OWN_NOTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


labels: dict[str, str] = {}
"""Labels by relation. A label ends with the template or serializer that read the relation first."""


def _lazy_load_label(relation: str) -> str:
    known = labels.get(relation)
    if known is None:
        place = reading_place()
        known = labels[relation] = f"lazy load of {relation}{f' in {place}' if place else ''}"
    return known


def sqlalchemy_load_label(loader: Any, *_args: object, **_options: object) -> str:
    """Return the label of a loader's statements."""
    return _lazy_load_label(f"{loader.parent.class_.__name__}.{loader.key}")


def django_object_label(descriptor: Any, *_args: object) -> str:
    """Return the label of a statement that gets the object of a foreign key."""
    field = vars(descriptor)["field"]  # a subclass may have a property with this name
    return _lazy_load_label(f"{field.model.__name__}.{field.name}")


def django_related_rows_label(queryset: Any, *_args: object) -> str | None:
    """Return the label of a statement that gets the objects that refer to one object.

    This covers foreign keys, many-to-many tables and one-to-one relations. None for other
    statements.
    """
    instance = queryset._hints.get("instance")
    if (
        instance is None
        or queryset._result_cache is not None
        or not _is_unfiltered_relation(queryset)
    ):
        return None
    field = queryset.query.where.children[0].lhs.target
    many = ""
    if field.one_to_one and field.remote_field.model is type(instance):
        name = field.remote_field.get_accessor_name()
    elif queryset.query.is_sliced:
        name = None
    else:
        many = "all "
        known = next(iter(queryset._known_related_objects), None)
        name = (
            known.remote_field.get_accessor_name()
            if known
            else _many_to_many_name(type(instance)._meta, field.model)
        )
    return _lazy_load_label(f"{many}{type(instance).__name__}.{name}") if name else None


def _is_unfiltered_relation(queryset: Any) -> bool:
    """Return whether this is .all() of a relation, which prefetch_related() can load."""
    query = queryset.query
    is_more = queryset._fields is not None or queryset._prefetch_related_lookups
    conditions = [getattr(one, "lookup_name", "") for one in query.where.children]
    return conditions == ["exact"] and not (is_more or query.order_by or query.select_related)


def _many_to_many_name(options: Any, model: Any) -> str | None:
    """Return the attribute of a many-to-many relation that uses this table, or None."""
    for field in options.many_to_many:
        if field.remote_field.through is model:
            return str(field.name)
    for relation in options.related_objects:
        if relation.many_to_many and relation.through is model:
            return str(relation.get_accessor_name())
    return None


def django_deferred_column_label(
    instance: Any, _using: str | None = None, fields: Any = None, *_args: object
) -> str | None:
    """Return the label of a statement that gets a column left out by .only() or .defer(),
    or None.
    """
    if not fields or len(fields) != 1 or fields[0] not in instance.get_deferred_fields():
        return None
    return _lazy_load_label(f"column {type(instance).__name__}.{fields[0]}")


def django_own_query_label(_operations: object, *_args: object) -> str:
    """Return the label of Django's own statements for its list of queries (DEBUG)."""
    return OWN_NOTE


LOADERS: dict[str, tuple[tuple[str, ...], str, Callable[..., str | None]]] = {
    # SQLAlchemy 2.1 renamed the class.
    "sqlalchemy.orm.strategies": (
        ("LazyLoader", "_LazyLoader"),
        "_emit_lazyload",
        sqlalchemy_load_label,
    ),
    "django.db.models.fields.related_descriptors": (
        ("ForwardManyToOneDescriptor",),
        "get_object",
        django_object_label,
    ),
    "django.db.models.query": (("QuerySet",), "_fetch_all", django_related_rows_label),
    "django.db.models.base": (("Model",), "refresh_from_db", django_deferred_column_label),
    "django.db.backends.sqlite3.operations": (
        ("DatabaseOperations",),
        "_quote_params_for_last_executed_query",
        django_own_query_label,
    ),
}
"""Names of the class, its loading method, and the label function, by module."""


class LazyLoads:
    """Labels lazy loads.

    Args:
        module: a key of LOADERS.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Replace the loading method.

        Raises:
            DriverError: this version has no such method.
        """
        names, method, describe = LOADERS[self.module]
        loader = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        if loader is None or method not in vars(loader):
            library = self.module.partition(".")[0]
            raise DriverError(f"lazy loads have no names: {library} is too old, or too new")
        runner = _core.label_wrapper(loader.__dict__[method], describe)
        self._replaced.measure(loader, method, runner)

    def detach(self) -> None:
        """Restore the method."""
        self._replaced.undo()
