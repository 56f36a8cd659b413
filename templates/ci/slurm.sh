#!/usr/bin/env bash
{= head =}
#
# The GPU tests from a bundle, as a job. On a machine that builds:
#   {= command =} test-gpu --bundle gpu-tests.tar.gz --for-python {= matrix.python =}
#   sha256sum gpu-tests.tar.gz > SHA256SUMS
# and beside both files, on the cluster:
#   sbatch --wait {= slurm_path =} python{= matrix.python =}
#SBATCH --job-name={= name =}-test-gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus={= gpu_count =}
#SBATCH --time={= gpu_minutes =}
#SBATCH --output=gpu-tests-%j.log
set -euo pipefail

python="${1:-python{= matrix.python =}}"

nvidia-smi
sha256sum --check --strict SHA256SUMS
work="$(mktemp --directory)"
trap 'rm -rf "$work"' EXIT
tar --extract --gzip --file gpu-tests.tar.gz --directory "$work"
# Slurm says which devices are this job's by CUDA_VISIBLE_DEVICES; the run uses what it shows.
"$python" "$work"/*-gpu-tests/run --gpu required --gpus all --total-timeout {= gpu_timeout_s =} \
  --results "results-${SLURM_JOB_ID:-local}"
