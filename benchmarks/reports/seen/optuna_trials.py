"""optuna/optuna#1501 (pull request; also #763, #760). Fetching all trials of a study takes minutes
with thousands of trials: "an unnecessary amount of queries".

Cause: params, values, user attributes and system attributes of each trial are loaded lazily: four
SELECTs for each trial.

Lines: trial.params, trial.values, ... in frozen() (loop in get_trials()).

Fix: selectinload of the four relationships in the query of get_trials().
"""

from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)
from _main import main

engine = create_engine("sqlite:///optuna.db")


class Base(DeclarativeBase):
    pass


class Study(Base):
    __tablename__ = "studies"
    study_id: Mapped[int] = mapped_column(primary_key=True)
    study_name: Mapped[str] = mapped_column(unique=True)


class Trial(Base):
    __tablename__ = "trials"
    trial_id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.study_id"), index=True)
    state: Mapped[str]
    params = relationship("TrialParam")
    values = relationship("TrialValue")
    user_attributes = relationship("TrialUserAttribute")
    system_attributes = relationship("TrialSystemAttribute")


def child(name, table):
    return type(
        name,
        (Base,),
        {
            "__tablename__": table,
            "id": mapped_column("id", primary_key=True),
            "__annotations__": {
                "id": Mapped[int],
                "trial_id": Mapped[int],
                "key": Mapped[str],
                "value": Mapped[float],
            },
            "trial_id": mapped_column(ForeignKey("trials.trial_id"), index=True),
        },
    )


TrialParam, TrialValue = child("TrialParam", "trial_params"), child("TrialValue", "trial_values")
TrialUserAttribute, TrialSystemAttribute = (
    child("TrialUserAttribute", "trial_user_attributes"),
    child("TrialSystemAttribute", "trial_system_attributes"),
)
KINDS = ((TrialParam, 4), (TrialValue, 1), (TrialUserAttribute, 2), (TrialSystemAttribute, 1))


def setup():
    Base.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(
            Study.__table__.insert(),
            [{"study_id": i, "study_name": f"study {i}"} for i in range(1, 4)],
        )
        c.execute(
            Trial.__table__.insert(),
            [{"trial_id": i, "study_id": 1 + i % 2, "state": "COMPLETE"} for i in range(700)],
        )
        for model, n in KINDS:
            c.execute(
                model.__table__.insert(),
                [
                    {"trial_id": i, "key": f"k{k}", "value": i * k / 7}
                    for i in range(700)
                    for k in range(n)
                ],
            )


def frozen(trial):
    return (
        trial.trial_id,
        {p.key: p.value for p in trial.params},
        [v.value for v in trial.values],
        {a.key: a.value for a in trial.user_attributes},
        {a.key: a.value for a in trial.system_attributes},
    )


def get_trials(session, name, *options):
    study = session.scalars(select(Study).where(Study.study_name == name)).one()
    query = (
        select(Trial)
        .where(Trial.study_id == study.study_id)
        .order_by(Trial.trial_id)
        .options(*options)
    )
    return [frozen(trial) for trial in session.scalars(query)]


def run(*options):
    with Session(engine) as session:
        trials = get_trials(session, "study 1", *options)
    return len(trials), round(sum(sum(t[1].values()) for t in trials))


main(
    setup,
    run,
    lambda: run(
        *(
            selectinload(r)
            for r in (Trial.params, Trial.values, Trial.user_attributes, Trial.system_attributes)
        )
    ),
)
