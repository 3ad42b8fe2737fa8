// Package results has the commands about what trainings have left: eval, runs, plot and export.
//
// They are flags and text, as those of package main are; what they ask for is done by pipeline/session, pipeline/compare,
// pipeline/curves and pipeline/export.
package results
