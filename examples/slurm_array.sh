#!/bin/bash
# One study as a SLURM array: each task carries out one shard, and a last job merges them.
#
#   jobs=$(sbatch --parsable --array=1-4 --export=ALL,STUDY=study.toml examples/slurm_array.sh)
#   sbatch --dependency=afterok:$jobs --export=ALL,STUDY=study.toml examples/slurm_array.sh merge
#
# A task that is requeued, or started again, continues its shard: no recorded call is made again. Money, rates and calls
# in flight of the study are divided evenly among the tasks. Keys come from the environment (OPENAI_API_KEY and so on).
#SBATCH --job-name=medicare-eval
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=12:00:00
#SBATCH --requeue
set -euo pipefail
shopt -s nullglob

shards=${SHARDS:-shards}

if [ "${1:-}" = merge ]; then
    exec medicare-eval merge "$shards"/*/*/ --to "${RUN:-runs/study}"
fi

mine="$shards/$SLURM_ARRAY_TASK_ID"
begun=("$mine"/*/manifest.json)
if [ ${#begun[@]} -gt 0 ]; then
    exec medicare-eval resume "$(dirname "${begun[0]}")" --quiet
fi
exec medicare-eval run "$STUDY" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out "$mine" --quiet
