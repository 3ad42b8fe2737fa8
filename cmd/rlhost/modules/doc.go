// Package modules has what the commands about single modules do.
package modules
