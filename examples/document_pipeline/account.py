"""The account that the demo gives of itself, and its check."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from examples.document_pipeline.handlers import ANALYSE, WORKFLOW
from examples.document_pipeline.journal import Journal
from workflow_adapters import Adapters, OutboxRecord, Status


async def tell(adapters: Adapters, run_id: str, journal: Journal, events: list[OutboxRecord]) -> None:
    """Print the report, the timeline, the events and the costs."""
    run = await adapters.persistence.get_run(run_id)
    report: Any = run.output if run is not None else None
    print("\nReport")
    files = report["files"] if report else []
    wide = max((len(file["file"]) for file in files), default=0)
    for file in files:
        print(f"  {file['file']:<{wide}} {file['words']:>6} words   {file['keywords']}")
        print(f"      {file['summary'][:100]}")
    print(f"  {'all files':<{wide}} {(report or {'words': 0})['words']:>6} words")

    print("\nTimeline (seconds, process, what happened)")
    entries = journal.read()
    for entry in entries:
        if entry["what"] != "step ran":
            detail = " ".join(f"{k}={v}" for k, v in entry.items() if k not in ("at", "who", "what", "job"))
            print(f"  {entry['at'] - entries[0]['at']:6.2f}  {entry['who']:<9} {entry['what']:<22} {detail}")

    print("\nStages")
    for stage in await adapters.persistence.get_stages_by_run(run_id):
        print(f"  {stage.stage_id:<{wide + len(ANALYSE)}} {stage.status.value:<10} attempt {stage.attempt}")

    print("\nEvents, in the order they were published")
    for event in events:
        payload: Any = event.payload
        print(f"  #{event.sequence:<3} {event.event_type:<17} {payload.get('stage', '')}".rstrip())

    stats = await adapters.ai_call_logger.get_stats(f"{WORKFLOW}/")
    tokens = stats.total_input_tokens
    print("\nModel calls")
    for model, sums in sorted(stats.per_model.items()):
        print(f"  {model:<14} {sums.calls:>4} calls {sums.input_tokens:>8} tokens in   ${sums.cost:.6f}")
    print(f"  {'all models':<14} {stats.total_calls:>4} calls {tokens:>8} tokens in   ${stats.total_cost:.6f}")


async def check(
    adapters: Adapters, run_id: str, journal: Journal, events: list[OutboxRecord], files: dict[str, Path]
) -> list[str]:
    """What is wrong with the result; nothing, one hopes."""
    wrong: list[str] = []
    run = await adapters.persistence.get_run(run_id)
    if run is None or run.status is not Status.COMPLETED:
        return ["the run did not complete"]
    report: Any = run.output
    counted = {file["file"]: file["words"] for file in report["files"]}
    expected = {name: len(path.read_text(errors="replace").split()) for name, path in files.items()}
    wrong += [
        f"{name}: {counted.get(name)} words, not {words}"
        for name, words in expected.items()
        if counted.get(name) != words
    ]
    ran = Counter((entry["stage"], entry["step"]) for entry in journal.find("step ran"))
    wrong += [f"step {step} of stage {stage} ran {count} times" for (stage, step), count in ran.items() if count > 1]
    if len(ran) != 3 * len(files):
        wrong.append(f"{len(ran)} steps ran, not {3 * len(files)}")
    if [event.sequence for event in events] != list(range(1, len(files) + 4)):
        wrong.append(f"the events came as {[event.sequence for event in events]}")
    late = [entry["outcome"] for entry in journal.find("late acknowledgement")]
    if late != ["superseded"]:
        wrong.append(f"the late acknowledgement of the stopped worker was {late}, not superseded")
    killed = {entry["stage"] for entry in journal.find("stalls")}
    taken_over = {entry["stage"] for entry in journal.find("attempt completed") if entry["attempt"] > 1}
    if not killed or not killed <= taken_over:
        wrong.append("the killed worker's job was not taken over")
    stages = {stage.stage_id for stage in await adapters.persistence.get_stages_by_run(run_id, Status.COMPLETED)}
    wrong += [f"stage {ANALYSE + name} did not complete" for name in files if ANALYSE + name not in stages]
    return wrong
