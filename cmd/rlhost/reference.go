package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/rlhost/rlhost/internal/markdown"
)

// reference is the page of the reference that the command line's own description makes. Commands stand under the titles of their groups.
func reference(app *kong.Application) string {
	var b strings.Builder
	b.WriteString("# Command line\n\n" + markdown.Generated)
	b.WriteString("\n" + markdown.Prose(app.Help+"\n\n"+app.Detail))
	b.WriteString("\n## Flags of every command\n\n" + valuesTable(app.Node))
	title := ""
	for _, command := range app.Leaves(true) {
		group := "Commands"
		if g := command.ClosestGroup(); g != nil {
			group = g.Title
		}
		if group != title {
			title = group
			b.WriteString("\n## " + strings.TrimSuffix(title, ":") + "\n")
		}
		b.WriteString("\n### " + app.Name + " " + commandPath(command) + "\n\n" + markdown.Prose(command.Help))
		b.WriteString("\n" + markdown.Block("text", app.Name+" "+command.Summary()))
		if command.Detail != "" {
			b.WriteString("\n" + markdown.Prose(command.Detail))
		}
		if table := valuesTable(command); table != "" {
			b.WriteString("\n" + table)
		}
	}
	return b.String()
}

// commandPath is the command's words without the program's name.
func commandPath(command *kong.Node) string {
	path := command.Name
	for at := command.Parent; at != nil && at.Type == kong.CommandNode; at = at.Parent {
		path = at.Name + " " + path
	}
	return path
}

// valuesTable has a row for each argument and flag of a command, and of the commands that it is a part of; empty if there is none.
func valuesTable(command *kong.Node) string {
	var rows [][]string
	for _, argument := range command.Positional {
		rows = append(rows, []string{markdown.Code(argument.Summary()), typeOf(argument), markdown.Code(argument.Default), markdown.Escape(argument.Help)})
	}
	for at := command; at != nil && (at == command || at.Type == kong.CommandNode); at = at.Parent {
		for _, flag := range at.Flags {
			if !flag.Hidden && flag.Name != "help" {
				rows = append(rows, []string{flagName(flag), typeOf(flag.Value), markdown.Code(flag.Default), markdown.Escape(flag.Help)})
			}
		}
	}
	if rows == nil {
		return ""
	}
	return markdown.Table([]string{"Name", "Type", "Default", "Meaning"}, rows)
}

// flagName is a flag as it is typed.
func flagName(flag *kong.Flag) string {
	name := "--" + flag.Name
	if flag.Tag.Negatable != "" {
		name = "--[no-]" + flag.Name
	} else if !flag.IsBool() {
		name += "=" + flag.FormatPlaceHolder()
		if flag.PlaceHolder == "" {
			name = "--" + flag.Name + "=" + strings.ToUpper(flag.Name)
		}
	}
	if flag.Short != 0 {
		name = "-" + string(flag.Short) + ", " + name
	}
	return markdown.Code(name)
}

// typeOf says what an argument or a flag takes.
func typeOf(v *kong.Value) string {
	if v.Enum != "" {
		return strings.Join(v.EnumSlice(), ", ")
	}
	t := v.Target.Type()
	list := ""
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), ", repeatable"
	}
	switch {
	case v.IsBool():
		return "switch"
	case t == reflect.TypeFor[time.Duration]():
		return "duration" + list
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint:
		return "integer" + list
	case reflect.Float64:
		return "number" + list
	case reflect.Map:
		return "KEY=VALUE, repeatable"
	}
	return "text" + list
}
