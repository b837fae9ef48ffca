"""The longer texts of `--help`, none wider than 79 columns."""

from __future__ import annotations

from textwrap import fill

from ..scoring.definitions import MEASURES

WIDTH = 79

MAIN = """\
Ask AI systems the Medicare questions a mystery shopper would ask, and judge
the answers only against a written, dated answer key. Every number leads back
to a quote, a fact, a source and the raw bytes.

  medicare-eval demo              a complete evaluation, without an API key
  medicare-eval run --scenario scenarios/v1 --target openai:gpt-4.1 --seed 42
  medicare-eval run study.toml    the same from a study file
  medicare-eval replay RUN        recompute a run's results, without any key
"""
EXIT_CODES = """\
exit codes:
  0 ok   2 usage or bad input   3 configuration or key
  4 incomplete, can be resumed; or nothing was scored   5 integrity
  6 storage (disk full, read-only, run in use)   130 second Ctrl-C
  `drift`, `series` also: 7 drifted   8 cannot tell
"""
RUN = """\
Ask each target every scenario and judge the answers. Every call is saved
before its result is used, so you can resume an interrupted run with
`medicare-eval resume RUN` without paying for any call twice.

  medicare-eval run --scenario scenarios/v1/scenario_001.json \\
      --target openai:gpt-4.1 --judges 2 --seed 42
  medicare-eval run --scenario scenarios/v1 \\
      --target fake:careful --target fake:wrong
  medicare-eval run study.toml --repeats 5
  medicare-eval run --registered registered.json

A study file (TOML) says everything these flags can say, and parameters per
target and judge; flags override it, and `--dry-run` writes it out in full
(docs/study_file.md).

Without --judge-model, fake: targets are judged by offline:rules (for demos
and tests, not for results). Real targets are judged by the default models of
up to two other providers whose API keys are set (tried in this order:
Anthropic, OpenAI, Google, xAI). A judge is never from the same model family
as the target.
"""
CHECK = """\
Measure judge error rates on the gold set: replies whose claims were labeled
by hand, each label with its reason. Each reply is judged as in a run, end to
end; then each verifier gets the gold claims. No prompt or judge was tuned on
the held-out and second splits. Writes a record that `report --judge-check`
uses to correct the estimates of runs with the same judges. With the --target
and the judge options of a run, it measures the judges of that run. Without
--judge-model and --target: the default judges of up to two providers whose
API keys are set, or else offline:rules.

  medicare-eval judge-check --split dev --worst 20
  medicare-eval judge-check --judge-model anthropic:claude-sonnet-4-6 \\
      --judge-model openai:gpt-5.5-2026-04-23
"""
REPORT = """\
Write a report: CSV by scenario, question and code, Markdown, a self-contained
HTML page, charts as SVG, and a Methods section with a Table 1 for a paper.
--checklist also fills in reporting checklists (CHART, TRIPOD-LLM and
MI-CLEAR-LLM) as far as the run can.

  medicare-eval report runs/20260101T120000Z
  medicare-eval report runs/A runs/B --checklist chart,tripod-llm \\
      --judge-check judge-checks/20260101T130000Z
"""
COMPARE = """\
Compare targets on the same questions, in trials of the same scenario,
variant and repetition. The first sentence says which one is better, or that
one cannot tell and how many scenarios would. If one of two runs judged the
other's transcripts again, compare the judges claim by claim.

  medicare-eval compare runs/A                    the targets of one run
  medicare-eval compare runs/A runs/B             of several runs, or judgings
  medicare-eval compare runs/A --html compare.html    as a page with a chart
"""
DRIFT = """\
What changed between two runs of the same study: first the facts (served
model, parameters, prompts, key), then the answers. Exit code 0: no change,
or no evidence of one as large as --floor; 7: drifted; 8: cannot tell.

To check the judges too, have them judge the old transcripts again:
  medicare-eval rejudge runs/OLD --judge-model ... --keep-claims
  medicare-eval drift runs/OLD runs/NEW --frozen runs/REJUDGED
"""
SERIES = """\
Run the same study every week or month and be told when the answers change.
Testing every new run against the first one raises a false alarm in nearly
half of all unchanged series within two years. A series has alarms that may
be looked at every time (CUSUM, with thresholds simulated for the study's own
design) and claims that hold at any number of looks (an e-process). The judges
are checked at every point, so that a judge that changed is not taken for a
target that did (docs/series.md).

  medicare-eval series init monthly study.toml
  medicare-eval series run monthly --max-cost 40     from cron, every month
  medicare-eval series status monthly
  medicare-eval series plot monthly --html monthly.html

Exit codes of run, add and status: 0 no alarm, 7 drifted, 8 cannot tell.
"""
SERIES_INIT = """\
Freeze a study to be run again and again, and simulate the thresholds of its
alarms for its own number of scenarios, questions and repeats. Calls nothing.

  medicare-eval series init monthly study.toml --every month --floor 0.05
  medicare-eval series init monthly --baseline runs/20261116T120000Z
"""
SERIES_RUN = """\
Make the point of the present period: run the frozen study, have the judges
label the labeled replies again, have them judge the first transcripts of the
segment again, and add the point. A second run in the same period is refused.
A run that was stopped or killed is continued by the same command, and no
recorded call is made again. A new plan year, key or rubric begins a new
segment by itself. A target that its provider retired ends its line. Other
judges (--judge-model) judge all earlier transcripts again first.

  medicare-eval series run monthly --max-cost 40 --batch judges
  medicare-eval series run monthly --max-cost 40 --quiet \\
      --summary summary.md --junit series.xml --html series.html
  medicare-eval series run monthly --max-cost 90 \\
      --judge-model anthropic:claude-sonnet-5-5 --judge-model google:gemini-3.8-flash
"""
SERIES_ADD = """\
Add a finished run of the frozen study that was made elsewhere, for example
merged from shards. Without --check and --frozen nobody knows whether the
judges changed, so an alarm at this point is answered by "cannot tell".

  medicare-eval series add monthly runs/20261201T060000Z \\
      --check judge-checks/20261201T070000Z --frozen runs/20261201T080000Z
"""
SERIES_STATUS = """\
What the series says. Reads only. Exit code 0: no alarm; 7: drifted; 8: cannot
tell, because the judges drifted or too many answers are missing.

  medicare-eval series status monthly --json
"""
SENSITIVITY = """\
What the scores depend on: how much of their variance is between scenarios,
between variants and wordings of one scenario, and between repeats. A large
part between repeats means that single answers are a matter of luck; a large
part between wordings, that the way of asking decides.

  medicare-eval sensitivity runs/A --measure completeness
  medicare-eval sensitivity runs/A --html sensitivity.html
"""
POWER = """\
How many scenarios and pairs of trials a comparison of two targets needs. A
pilot run of two targets, with two repeats or more, tells how much paired
differences vary and how alike they are within a scenario (ICC). Answers in
one scenario resemble each other, so more scenarios help more than repeats.

  medicare-eval power --pilot runs/A --difference 0.05
  medicare-eval power --sd 0.3 --clusters 34 --icc 0.4    no pilot yet
  medicare-eval power --pilot runs/A --trials 200         what 200 pairs detect
"""
FREEZE = """\
Write a pre-registration before a study is run: hashes of scenarios, keys and
prompts, models, parameters, n, the primary outcome and the tests. It also
contains the study itself, so `run --registered FILE` needs nothing else. That
run must match it, or every report lists the differences (--allow-deviations).

  medicare-eval freeze study.toml --to registered.json
  medicare-eval freeze --scenario scenarios/v1/study --repeats 10 \\
      --target openai:gpt-4.1 --to registered.json \\
      --primary-outcome "share of accurate and complete answers"
"""
REJUDGE = """\
Judge an earlier run's transcripts again. The target is not called: its
replies come from the earlier journal and are copied into the new run, which
can be verified and replayed on its own. The earlier run is left as it is.

  medicare-eval rejudge runs/20260101T120000Z --keep-claims \\
      --judge-model anthropic:claude-sonnet-4-6

Which labels changed, and why:
  medicare-eval compare runs/20260101T120000Z runs/20260102T090000Z
"""
MERGE = """\
Join the shards of a study, which `run --shard I/K` wrote on several machines.
The merged run is what one process would have written: the same results, byte
for byte, and every call of every shard in one journal. Shards are checked,
read, and left as they are.

  medicare-eval run study.toml --shard 1/2 --out shards     on one machine
  medicare-eval run study.toml --shard 2/2 --out shards     on another
  medicare-eval merge shards/* --to runs/study

A shard that stopped is resumed by itself:  medicare-eval resume shards/...
"""
SCENARIOS = """\
What the scenario bank contains.

  medicare-eval scenarios list       themes, variants, plan years, facts
  medicare-eval scenarios facts      every fact, its dates, how confirmed
  medicare-eval scenarios sources    every source, with the facts that cite it
  medicare-eval scenarios library    every fact that scenarios can refer to

To write scenarios in a spreadsheet, without JSON: export some, edit the
workbook, and import it. Errors name the cell, such as Facts!G7; if there is
one, nothing is written. No file is ever overwritten.

  medicare-eval scenarios export scenarios/v1/topics/cobra.json \\
      --to xlsx --out cobra.xlsx
  medicare-eval scenarios import cobra.xlsx --out drafts
"""
PLUGINS = """\
List the adapters, scenario packs and exporters that installed packages add
(docs/plugins.md).
"""

REVIEW = """\
People judge a part of a run again, in a browser (docs/review.md): trials that
are flagged or that readers marked as doubtful, and a random sample of the rest.
They see one claim at a time, with the key beside it. What the judges and other
reviewers said is shown only after their own answer is saved. The result is a
run like any other.

  medicare-eval review start runs/20260101T120000Z \\
      --reviewers r1,r2 --adjudicator r3
  medicare-eval review continue runs/20260102T090000Z

Then, agreement and corrected shares, and a gold set for `judge-check`:
  medicare-eval report runs/20260102T090000Z
  medicare-eval review export runs/20260102T090000Z --to gold
"""
VIEW = """\
Look at runs in a browser (docs/review.md): the answer, a matrix of targets and
questions, every trial with its claims, verdicts, facts and raw calls, and the
progress of runs that go on. Series have their chart over time, what changed,
and links to the trials. Run folders are only read. A verdict that you mark as
doubtful is kept beside its run, in doubts.jsonl, for the next review.

  medicare-eval view
  medicare-eval view runs/20260101T120000Z --port 8000
"""
SOURCES = """\
Check the web addresses in an answer, offline (docs/sources.md): are they well
formed, are they official or only made to look so, and is the page known? A
snapshot is a folder with the pages that are known. It is only ever added to.

  medicare-eval sources check answer.txt
  medicare-eval sources check --text "See medicare.gov.plans-help.com/enroll"
  medicare-eval sources list

`snapshot` is the only command that reads the web. It keeps the text of pages
of the federal government, and only the hash of others.

  medicare-eval sources snapshot https://www.medicare.gov/basics \\
      https://www.ssa.gov/medicare --to snapshots/2026
  medicare-eval sources check answer.txt --snapshot snapshots/2026
"""
IMPORT_TRANSCRIPTS = """\
Import recorded conversations (docs/transcripts.md): calls with counselors, or
chats pasted from an app without an API. One file is one conversation. Then
`run --target transcript:DIR` judges what was said like a model's answers.

  medicare-eval import-transcripts call1.txt call2.docx \\
      --scenario scenarios/v1/scenario_001.json \\
      --to calls --system "SHIP counselors" --names names.txt
  medicare-eval import-transcripts call1.txt --to calls --map Q2=7,Q3=none \\
      --keep 2 --scenario scenarios/v1/scenario_001.json

You see which words were taken as which scripted question, and what will be
redacted, and confirm both. Nothing is saved before that. Correct with --map,
--keep and --redact, and run the command again.
"""
COLLECT = """\
Collect a conversation with a chat app that has no API. You are shown one
scripted question at a time. Paste it into the app, and paste the reply back,
ended by a line with only a period. Every reply is redacted and saved at once,
so you can stop at any time; the same command continues.

  medicare-eval collect --scenario scenarios/v1/scenario_001.json \\
      --to chats --system "Chat app X"
  medicare-eval collect --status --to chats

Instead of a reply: /skip (the question is not asked), /no-reply, /undo (take
the last reply back), /quit.

--browser does the same on a page in your browser, which only this machine
can open.
"""


def _with_measures(text: str) -> str:
    """A text, and below it what each measure is."""
    first = 2 + max(map(len, MEASURES)) + 2
    lines = (
        fill(one.clause, WIDTH, initial_indent=f"  {name}".ljust(first), subsequent_indent=" " * first)
        for name, one in MEASURES.items()
    )
    return "\n".join([text, "Measures:", *lines, ""])


COMPARE, SENSITIVITY, POWER = map(_with_measures, (COMPARE, SENSITIVITY, POWER))
