#!/bin/bash
# Train on several hosts of a Slurm cluster. The folder must be shared by all hosts:
#
#     sbatch --nodes 4 deploy/slurm.sh config.toml train.steps=100000
#
# A job that is near its time limit saves the state, and goes back into the queue. Slurm also starts
# it again after the loss of a host. In both cases it continues from the last checkpoint.
#SBATCH --job-name=regard
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@600
#SBATCH --output=regard-%j.txt
#SBATCH --open-mode=append
set -euo pipefail

config=${1:?usage: sbatch deploy/slurm.sh CONFIG [KEY=VALUE ...]}
run=${RUN:-runs/$(basename "$config" .toml)}
processes=${SLURM_GPUS_ON_NODE:-2} # of each host
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
port=$((20000 + SLURM_JOB_ID % 10000))
cores=${SLURM_CPUS_PER_TASK:-$processes}
export OMP_NUM_THREADS=$((cores > processes ? cores / processes : 1))

# The two hyphens keep torchrun from reading the options of regard.
srun torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" \
    --nproc-per-node "$processes" \
    --rdzv-backend c10d \
    --rdzv-endpoint "${hosts[0]}:$port" \
    --rdzv-id "$SLURM_JOB_ID" \
    --max-restarts 10 \
    --shutdown-timeout 500 \
    -m -- regard train "$@" --run "$run" &
step=$!

is_stopped=no
stop() {
    is_stopped=yes
    kill -TERM "$step" # regard saves the state after its step
}
trap stop USR1

code=0
wait "$step" || code=$?
if [ "$is_stopped" = yes ]; then
    wait "$step" || true
    scontrol requeue "$SLURM_JOB_ID"
    exit
fi
exit "$code"
