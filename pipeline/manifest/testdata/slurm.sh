#!/bin/sh
#SBATCH --job-name=cart-pole
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
# sbatch THIS, in the folder of the pipeline file, which all nodes see; rlhost is in the PATH of each.
# The first task trains, the others join.
exec srun --kill-on-bad-exit=1 sh -c '
  if [ "$SLURM_PROCID" = 0 ]; then
    exec rlhost train pipeline.toml --listen 0.0.0.0:4222
  fi
  exec rlhost join --token-file '\''runs/Cart_Pole/*/join.token'\'' --wait 10m --name "$(hostname)-$SLURM_PROCID"
'
