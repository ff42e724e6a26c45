"""`queryprof lab grow`: how a recorded workload grows with its database."""

from __future__ import annotations

import click

from queryprof.cli.workload import workload_arguments
from queryprof.errors import QueryprofError


@click.command()
@workload_arguments
def grow(file: str, database: str) -> None:
    """Forecast how FILE's workload grows with its database.

    FILE is a trace with a workload. queryprof replays its queries on the first eighth, quarter and
    half of each table's rows, and on all rows. The times are estimates.
    """
    from queryprof.analysis.baseline_rules import RegressionRules
    from queryprof.cli.progress import progress
    from queryprof.collect.reader import read_profile
    from queryprof.comparing.baseline_figures import figures_of_test
    from queryprof.confined.folder import temporary_folder
    from queryprof.growth.composed import compose_runs
    from queryprof.replay.growing import SHARES, replay_shares
    from queryprof.replay.replaying import load_replay
    from queryprof.report.terminal.growth import print_growth

    found = load_replay(file, database)
    profile = read_profile(file)
    with temporary_folder() as folder, progress("replaying", len(SHARES)) as step:
        pasts = replay_shares(found, folder, step)
        replays = [
            (one.share, one.rows, figures_of_test(past.aggregates, RegressionRules(), past.plans))
            for one in pasts
            for past in [read_profile(one.trace)]
        ]
    recorded = figures_of_test(profile.aggregates, RegressionRules())
    result = compose_runs(recorded, pasts[-1].order, replays)
    if not any(run.figures for run in result.runs):
        raise QueryprofError(f"{file}: no query of its workload can be replayed on {database}")
    times: dict[str, int] = {}
    for one in profile.aggregates:
        times[one.statement] = times.get(one.statement, 0) + one.self_ns
    print_growth(result, times, recorded, pasts[-1].left_out)
