package main

import (
	"strings"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/internal/markdown"
)

// metricsPage is the page of all metrics that runs write.
func metricsPage(string) (string, error) {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + markdown.Generated + "\n" + markdown.Prose(metricsIntro))
	for _, g := range metrics.Groups {
		var rows [][]string
		for _, m := range g.Metrics {
			rows = append(rows, []string{markdown.Code(m.Name), string(m.Kind), markdown.Escape(m.Unit), markdown.Escape(m.Meaning) + "."})
		}
		b.WriteString("\n## " + g.Title + "\n\n" + markdown.Table([]string{"Name", "Kind", "Unit", "Meaning"}, rows))
	}
	var endings [][]string
	for _, s := range metrics.Suffixes {
		endings = append(endings, []string{markdown.Code(s.Ending), s.Meaning})
	}
	b.WriteString("\n## Endings of histograms\n\n" + markdown.Prose(endingsIntro) + "\n" + markdown.Table([]string{"Ending", "Meaning"}, endings))
	b.WriteString("\n## Progress line of `rlhost train`\n\n" + markdown.Prose(progressIntro) + "\n" + markdown.Table([]string{"Part", "Example", "Meaning"}, progressParts))
	return b.String(), nil
}

const metricsIntro = `Every number that a run writes, with its unit and meaning.

A run writes its metrics to ` + "`metrics.jsonl`" + ` in its [folder](run-folder.md).
Each dataset of the leading policy makes one line; from 64 MiB on, at most one line a second is written.
The key ` + "`log`" + ` of ` + "`[component.runner]`" + ` writes the same numbers as CSV and for TensorBoard, and [serves them to Prometheus](../how-to/evaluate-and-plot.md#prometheus-and-grafana).

The numbers of a policy that does not lead have its name in front, such as ` + "`rival/losses/entropy`" + `.
Components and modules of your own write metrics under their own names; they are not listed here.

A line's kind says how the number comes about.
A line metric is computed for that line, a total too and never falls, a counter rises from the start of the program on, a gauge is the newest value, and a histogram has several [endings](#endings-of-histograms).
A word in capitals stands for any name.
A number that is not finite is null in JSON.`

const endingsIntro = `A histogram's names in a line are its name with one of these endings.
An empty histogram has ` + "`_count`" + ` alone.`

const progressIntro = `The line has as many of these parts as the terminal is wide for.`

var progressParts = [][]string{
	{"time", "`14:02:11`", "Time of day."},
	{"`env steps`", "`2.05k`", "Env steps learned from (`global_step`)."},
	{"`return`", "`200.0±100.0`", "Mean and standard deviation of the returns in the window. A note in brackets says that the window is not full, or for how long no episode has ended."},
	{"`per s`", "`1.06M|1.02M`", "Env steps made in a second, over the last 10 and the last 60 seconds."},
	{"`length`", "`195`", "Mean length of the episodes in the window."},
	{"`lag`", "`1.0/2`", "Mean and largest policy lag of the newest dataset, in versions."},
	{"`inference.act`", "`2/64`", "Messages that wait in the queue of a slot, and its depth. Each queue has its part."},
	{"`kl`", "`0.0041`", "`losses/approx_kl` of the newest dataset."},
	{"`clip`", "`0.112`", "`losses/clipfrac` of the newest dataset."},
	{"`entropy`", "`0.563`", "`losses/entropy` of the newest dataset."},
	{"`log errors`", "`1`", "Lines that could not be written; shown where there are some."},
}
