#!/bin/sh
#SBATCH --job-name={{.Label}}
#SBATCH --nodes={{.Nodes}}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={{.Cores}}
# sbatch THIS, in the folder of the pipeline file, which all nodes see; rlhost is in the PATH of each.
# The first task trains, the others join.
exec srun --kill-on-bad-exit=1 sh -c '
  if [ "$SLURM_PROCID" = 0 ]; then
    exec rlhost {{words .Train | inner}}
  fi
  exec rlhost {{words (.Join "") | inner}} --name "$(hostname)-$SLURM_PROCID"
'
