package table

// Worded is a struct whose value may be one word in place of a table: place = "spread", or place = { host = "b" }. Decode and EncodeValue use it.
type Worded interface {
	// SetWord takes the word, any one: its owner checks it.
	SetWord(word string)
	// Word returns the value as a word; ok is false where it takes a table.
	Word() (word string, ok bool)
}

// worder is the part of Worded that values have: the other needs a pointer.
type worder interface {
	Word() (word string, ok bool)
}
