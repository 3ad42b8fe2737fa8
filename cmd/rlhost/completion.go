package main

import (
	"embed"
	"os"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"
)

// completions are the scripts that make a shell ask this program for completions.
//
//go:embed completion.*sh
var completions embed.FS

// answerShell exits with what may come next where a shell asks for that, in COMP_LINE.
func answerShell(parser *kong.Kong) {
	if os.Getenv("COMP_LINE") == "" {
		return // every start passes here, and only a shell's question needs the tree of completions
	}
	kongplete.Complete(parser, kongplete.WithPredictor("pipeline", complete.PredictFiles("*.toml")))
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help tells how to try it.
func (c *completionCommand) Help() string {
	return `The first lines of the script say where it belongs. For this shell alone:

  source <(rlhost completion bash)
  rlhost completion fish | source`
}

// Run prints a shell's script.
func (c *completionCommand) Run(p *program) error {
	script, err := completions.ReadFile("completion." + c.Shell)
	if err != nil {
		return err
	}
	_, err = p.out.Write(script)
	return err
}
