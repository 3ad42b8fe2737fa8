package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/manifest"
	"github.com/rlhost/rlhost/pipeline/placement"
)

type clusterCommand struct {
	Manifest manifestCommand `cmd:"" help:"Write what starts a run on several machines, for a scheduler or for ssh."`
}

type manifestCommand struct {
	Pipeline string `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file."`
	Slurm    bool   `name:"slurm" xor:"format" help:"A script for sbatch."`
	JobSet   bool   `name:"jobset" xor:"format" help:"A JobSet for Kubernetes."`
	Nomad    bool   `name:"nomad" xor:"format" help:"A job for Nomad."`
	Compose  bool   `name:"compose" xor:"format" help:"A file for docker compose or podman compose."`
	SSH      string `name:"ssh" xor:"format" placeholder:"FILE" help:"A script that joins the machines of a file by ssh. Its lines are those of rlhost graph --hosts: 'NAME slots=N KEY=VALUE', the run's own first."`
	Hosts    int    `placeholder:"N" help:"Other machines than the run's own, but for --ssh; default wait_for of [cluster], else 1."`
	Cores    int    `default:"4" help:"Processors of each machine, but for --ssh."`
	Image    string `default:"rlhost" help:"Image of containers."`
}

// Help shows what a manifest is for.
func (c *manifestCommand) Help() string {
	return `One process trains and listens, the others join by the token in its folder, which all machines see; by ssh they are handed it. Nothing
is started.

  rlhost cluster manifest --slurm --hosts 3 --cores 16 > job.sh && sbatch job.sh
  rlhost cluster manifest --ssh hosts.txt | sh
  rlhost cluster manifest --jobset --image registry.example/rlhost > job.yaml && kubectl apply -f job.yaml
  rlhost cluster manifest --compose > compose.yaml && docker compose up`
}

// Run writes the manifest of a pipeline.
func (c *manifestCommand) Run(p *program) error {
	if c.format() == "" {
		return fail(exitUsage, errors.New("for what? Name one of --slurm, --jobset, --nomad, --compose and --ssh"))
	}
	return p.withGraph(c.Pipeline, nil, func(g *graph.Graph, _ *graph.Parts) error {
		text, err := c.write(g)
		if err != nil {
			return fail(exitUsage, err)
		}
		_, err = p.out.Write(text)
		return err
	})
}

func (c *manifestCommand) write(g *graph.Graph) ([]byte, error) {
	if len(g.Cluster.Servers) > 0 {
		return nil, errors.New("servers of [cluster]: machines meet there; begin rlhost join --creds FILE on each")
	}
	if c.Hosts < 0 || c.Cores < 1 {
		return nil, fmt.Errorf("--hosts %d, --cores %d: want 1 or more", c.Hosts, c.Cores)
	}
	j := manifest.Job{
		Name: g.Run.Name, File: filepath.Clean(c.Pipeline), Runs: filepath.Clean(g.Run.Dir), Listen: g.Cluster.Listen,
		Hosts: max(c.Hosts, 1), Cores: c.Cores, Image: c.Image,
	}
	if c.Hosts == 0 {
		j.Hosts = max(g.Cluster.WaitFor, 1)
	}
	if c.SSH != "" {
		src, err := files.Read(c.SSH, maxHosts)
		if err != nil {
			return nil, fmt.Errorf("--ssh: %w", err)
		}
		hosts, err := placement.ParseHosts(string(src))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.SSH, err)
		}
		j.Machines = hosts[min(1, len(hosts)):]
	}
	var text bytes.Buffer
	err := manifest.Write(&text, c.format(), j)
	return text.Bytes(), err
}

// format is the one that was asked for, or empty.
func (c *manifestCommand) format() manifest.Format {
	switch {
	case c.Slurm:
		return manifest.Slurm
	case c.JobSet:
		return manifest.JobSet
	case c.Nomad:
		return manifest.Nomad
	case c.Compose:
		return manifest.Compose
	case c.SSH != "":
		return manifest.SSH
	}
	return ""
}
