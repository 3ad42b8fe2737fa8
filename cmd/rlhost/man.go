package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/rlhost/rlhost/hostabi"
)

type manCommand struct {
	Markdown bool `help:"Print the page of the reference instead, as Markdown."`
}

// Help tells how to read it.
func (c *manCommand) Help() string {
	return `The page is written in roff. To read it, and to keep it for man rlhost:

  rlhost man | man -l -
  rlhost man >~/.local/share/man/man1/rlhost.1`
}

// Run prints the page, in roff or in Markdown.
func (c *manCommand) Run(p *program, parsed *kong.Context) error {
	page := manual
	if c.Markdown {
		page = reference
	}
	_, err := io.WriteString(p.out, page(parsed.Model))
	return err
}

// manual is the page of the manual that the command line's own description makes.
func manual(app *kong.Application) string {
	m := &manualPage{}
	fmt.Fprintf(m, ".TH RLHOST 1 \"\" \"rlhost %s\"\n", hostabi.Release)
	m.heading(".SH", "NAME")
	m.prose("rlhost - " + app.Help)
	m.heading(".SH", "SYNOPSIS")
	m.prose(app.Name + app.Summary())
	m.heading(".SH", "DESCRIPTION")
	m.prose(app.Detail)
	m.values(app.Node)
	m.heading(".SH", "COMMANDS")
	for _, command := range app.Leaves(true) {
		m.heading(".SS", command.Summary())
		m.prose(command.Help + "\n\n" + command.Detail)
		m.values(command)
	}
	return m.String()
}

// manualPage is a page in roff as it is written.
type manualPage struct{ strings.Builder }

var roffText = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `"`, `\(dq`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// inRoff is text that roff takes for nothing else: no line of it begins as a request does.
func inRoff(text string) string { return roffText.Replace("\n" + text)[1:] }

func (m *manualPage) heading(macro, text string) { fmt.Fprintln(m, macro, inRoff(text)) }

// prose writes paragraphs; one that is indented keeps its lines.
func (m *manualPage) prose(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			fmt.Fprintln(m, ".PP")
		}
		form := "%s\n"
		if strings.HasPrefix(paragraph, " ") {
			form = ".nf\n%s\n.fi\n"
		}
		fmt.Fprintf(m, form, inRoff(paragraph))
	}
}

// values writes what a command's arguments and flags mean.
func (m *manualPage) values(command *kong.Node) {
	for _, argument := range command.Positional {
		m.value(argument.Summary(), argument.Help)
	}
	for _, flag := range command.Flags {
		m.value(flag.String(), flag.Help)
	}
}

func (m *manualPage) value(name, help string) {
	fmt.Fprintf(m, ".TP\n.B %s\n%s\n", inRoff(name), inRoff(help))
}
