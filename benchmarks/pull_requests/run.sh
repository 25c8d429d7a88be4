#!/bin/bash
# On a machine with GPUs, from the root of a checkout: bash benchmarks/pull_requests/run.sh; OUT=FOLDER is where the results go.
# Each GPU gets a part of the ten programs; a program takes some 45 s: 8 minutes on one GPU, 4 on two, 2 on four or more.
set -u
OUT=${OUT:-syncscan-out/pull_requests}; work=$(mktemp -d); mkdir -p "$OUT"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
gpus=${GPUS:-$(python3 -c "import torch; print(max(1, torch.cuda.device_count()))")}
for k in $(seq 1 "$gpus"); do
  CUDA_VISIBLE_DEVICES=$((k - 1)) timeout -k 2 "${LIMIT:-560}" \
    python3 -m benchmarks.pull_requests.measure "$work" --part "$k/$gpus" "$@" > "$work/log.$k.txt" 2>&1 &
done
wait
cat "$work"/log.*.txt
cat "$work"/results.*.jsonl > "$work/results.jsonl"
cp "$work"/results.jsonl "$work"/log.*.txt "$OUT"
tar -cf "$OUT/recordings.tar" -C "$work" recordings
rm -r "$work"
ls -la "$OUT"
