// Package manifest writes what starts a run on several machines: a file for a scheduler, or a script for ssh.
//
//	err := manifest.Write(os.Stdout, manifest.Slurm, manifest.Job{Name: "cartpole", File: "pipeline.toml", Runs: "runs", Hosts: 3, Cores: 8})
//
// One process trains and listens, the others join by the token in the run's folder. For all formats but ssh that folder, and the pipeline
// file, are seen by all machines.
package manifest
