// Package table turns tables of a file or a document into structs, strictly, and says what is wrong with one: the error
// with a code that all of this project's checks have in common.
//
//	config := settings{Horizon: 128} // what the table does not have keeps its value
//	if err := table.Decode(table.Plain(doc), &config); err != nil {
//		return err // Errors, one for each key that is wrong
//	}
//
// Fields are named by their toml tags. A time.Duration is written "200us", an integer with the option bytes "16MiB" or as a
// number, a type with UnmarshalText in its own words. Unknown keys are refused with the nearest known one.
//
// The package reads no files: whoever does hands it a Value, and finds the places of what is wrong by the values in it.
package table
