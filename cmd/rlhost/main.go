package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/names"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// commandLine is the whole command line; help and usage errors come from it.
type commandLine struct {
	Folder  string           `short:"C" name:"dir" type:"existingdir" placeholder:"DIR" help:"Work in this folder."`
	Color   string           `enum:"auto,always,never" default:"auto" help:"Colour on the terminal: auto, always or never."`
	Log     string           `enum:"text,json" default:"text" help:"Form of messages on standard error: text or json."`
	Release kong.VersionFlag `name:"version" help:"Print the version."`

	Train  trainCommand   `cmd:"" help:"Train the policy of a pipeline."`
	Run    runCommand     `cmd:"" help:"Run a pipeline, with a learner or without."`
	Dev    devCommand     `cmd:"" help:"Train, and bring each save of a source into the running training."`
	Join   joinCommand    `cmd:"" help:"Make this machine a host of a run."`
	Sweep  sweepCommand   `cmd:"" help:"Search for the keys with which training goes best."`
	Eval   results.Eval   `cmd:"" help:"Evaluate a trained policy."`
	Watch  watchCommand   `cmd:"" help:"Show a policy, or chance, playing an environment."`
	Play   playCommand    `cmd:"" help:"Play an environment, alone or with a policy."`
	Replay replayCommand  `cmd:"" help:"Play an episode of a run again, bit for bit."`
	Runs   results.Runs   `cmd:"" help:"List, show, compare and remove runs."`
	Plot   results.Plot   `cmd:"" help:"Draw learning curves."`
	Export results.Export `cmd:"" help:"Write a trained policy for NumPy, ONNX, safetensors, WebAssembly or a browser."`

	live

	Validate validateCommand `cmd:"" help:"Check pipeline files without running them."`
	Show     showCommand     `cmd:"" help:"Print a pipeline, as written or in full."`
	Graph    graphCommand    `cmd:"" help:"Show how a pipeline is wired."`
	Cluster  clusterCommand  `cmd:"" help:"Runs on several machines."`
	Fmt      fmtCommand      `cmd:"" help:"Give pipeline files their one layout."`
	Schema   schemaCommand   `cmd:"" help:"Print the JSON schema of pipeline files, for editors."`

	New     newCommand     `cmd:"" help:"Write a folder to begin in: an environment, a component, a program or a pipeline."`
	Doctor  doctorCommand  `cmd:"" help:"Tell what builds environments here, and what is missing."`
	Envs    envsCommand    `cmd:"" help:"List the environments that are built in."`
	Check   checkCommand   `cmd:"" help:"Check that an environment or a component keeps its promises."`
	Bench   benchCommand   `cmd:"" help:"Measure how fast an environment steps."`
	Profile profileCommand `cmd:"" help:"Find where the time of an environment goes."`
	Inspect inspectCommand `cmd:"" help:"Read a module without running it."`

	Vector vectorCommand `cmd:"" hidden:"" help:"Step environments for another program."`
	Video  videoCommand  `cmd:"" hidden:"" help:"Write the pictures of another program into a file."`

	Plugin  pluginCommand  `cmd:"" help:"Native plugins: programs that run components or environments."`
	Store   storeCommand   `cmd:"" help:"Serve a store of named objects in shared memory."`
	Names   namesCommand   `cmd:"" help:"Names with which programs find each other."`
	Channel channelCommand `cmd:"" help:"Channels: queues of items with keys and weights."`

	Explain    explainCommand    `cmd:"" help:"Explain the code of an error, a warning or a check."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Completion completionCommand `cmd:"" help:"Print the script that completes rlhost's words in a shell."`
	Man        manCommand        `cmd:"" help:"Print the page of the manual."`
}

// groups are the titles under which --help lists the commands, with the first command of each: the next ones belong to it too.
var groups = []struct{ title, first string }{
	{"Training and its results:", "train"},
	{"A running job:", "status"},
	{"Pipeline files:", "validate"},
	{"Environments and components:", "new"},
	{"Programs:", "plugin"},
	{"Help:", "explain"},
}

// inGroups puts the commands into their groups. A tag would put their flags there too.
func inGroups(parser *kong.Kong) error {
	next, group := 0, &kong.Group{}
	for _, command := range parser.Model.Children {
		if next < len(groups) && command.Name == groups[next].first {
			group = &kong.Group{Key: command.Name, Title: groups[next].title}
			next++
		}
		command.Group = group
	}
	if next < len(groups) {
		return fmt.Errorf("no command %s begins a group", groups[next].first)
	}
	return nil
}

// Help is the beginning of rlhost --help.
func (c *commandLine) Help() string {
	return `To begin with:

  rlhost train                     train ./pipeline.toml
  rlhost eval                      evaluate the newest run
  rlhost check my.wasm             is my environment right?
  rlhost status                    the state of the running job
  rlhost swap rollout new.wasm     replace its environment while it runs

Exit codes:

  0    ok, also after rlhost stop and SIGTERM
  1    the run failed
  2    usage
  3    the pipeline file is invalid
  4    a check failed
  5    a plugin cannot be used
  6    --require was not reached
  7    the run ended with nothing learned
  130  interrupted`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program without the process around it.
func run(args []string, out, errOut io.Writer) int {
	if runtime.GOOS != "linux" {
		fmt.Fprintf(errOut, "rlhost: this is %s; rlhost runs on Linux alone, because it shares sealed memory files between host and plugins\n", runtime.GOOS)
		return exitFailed
	}
	if len(args) > 0 && args[0] == compilerCommand {
		return wasm.ServeCompiler(args[1:])
	}
	keepFileSizeErrors()
	cli := &commandLine{}
	exited := -1
	parser, err := kong.New(cli, kong.Name("rlhost"), kong.Writers(out, errOut), kong.Vars{"version": versionLine()},
		kong.Description("Trains reinforcement-learning policies (PPO, APPO) on Gymnasium environments, and on environments in C, Rust or Go compiled to WebAssembly."),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.PostBuild(inGroups))
	if err != nil {
		fmt.Fprintf(errOut, "rlhost: %v\n", err)
		return exitFailed
	}
	answerShell(parser)
	if exited >= 0 {
		return exited
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		usage(err, errOut)
		return exitUsage
	}
	if cli.Folder != "" {
		if err := os.Chdir(cli.Folder); err != nil {
			fmt.Fprintf(errOut, "rlhost: %v\n", err)
			return exitUsage
		}
	}
	p := &program{out: out, err: errOut, cli: cli}
	return p.exitCode(command.Run(p, p.forResults()))
}

// usage prints the error of a command line, and where to read on.
func usage(err error, errOut io.Writer) {
	command := ""
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		command = parse.Context.Selected().Name + " "
	}
	fmt.Fprintf(errOut, "rlhost: %s\n  help: rlhost %s--help\n", printable(renamed(err.Error())), command)
}

// unknownWord matches the errors about a flag or a command that there is not.
var unknownWord = regexp.MustCompile(`^(unknown flag|unexpected argument) (\S+?)(?:, did you mean .*)?$`)

// renamed names the word that has taken the place of a former one in the error of a command line.
func renamed(message string) string {
	m := unknownWord.FindStringSubmatch(message)
	switch now, ok := "", false; {
	case m == nil:
	case m[2] == "--fresh":
		return "unknown flag --fresh: leave it out, a new run begins unless --resume is given"
	case m[2] == "resume":
		return `unexpected argument resume, did you mean "unpause", which ends a pause, or "train --resume RUN", which continues a run?`
	default:
		if now, ok = names.Flag(m[2]); ok {
			return fmt.Sprintf("%s %s, did you mean %q?", m[1], m[2], now)
		}
	}
	return message
}

// live are the commands about a running job.
type live struct {
	Status     statusCommand     `cmd:"" help:"Show the state of a running job."`
	Top        topCommand        `cmd:"" help:"Watch a running job in the terminal."`
	Dash       dashCommand       `cmd:"" help:"Serve a page about runs, live, for a browser on this machine."`
	Swap       swapCommand       `cmd:"" help:"Replace a component or an environment while the run continues."`
	Rollback   rollbackCommand   `cmd:"" help:"Go back to the previous version."`
	Reload     reloadCommand     `cmd:"" help:"Apply a changed pipeline file to a running job."`
	Scale      scaleCommand      `cmd:"" help:"Run more or fewer instances of a component, or of a group."`
	Connect    connectCommand    `cmd:"" help:"Put a wire into a running job."`
	Disconnect disconnectCommand `cmd:"" help:"Take a wire out of a running job."`
	Pause      pauseCommand      `cmd:"" help:"Pause components."`
	Unpause    unpauseCommand    `cmd:"" help:"End a pause."`
	Request    requestCommand    `cmd:"" help:"Ask components a question that they answer."`
	Checkpoint checkpointCommand `cmd:"" help:"Save a checkpoint at the next dataset boundary."`
	Stop       stopCommand       `cmd:"" help:"End a run, with a checkpoint."`
	Tap        tapCommand        `cmd:"" help:"Show messages of wires as they pass."`
	Logs       logsCommand       `cmd:"" help:"Show the log of a run."`
	History    results.History   `cmd:"" help:"List the changes made to a run: who, when, from what to what, and the outcome."`
}
