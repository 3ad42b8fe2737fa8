// Package web shows a game on a page, live, and takes keys from it.
//
//	screen := web.New(web.Options{Open: open, Rate: 60})
//	err := screen.Frames(w, r) // of a page's EventSource
//
// A screen opens its stage when the first page looks and closes it after the last: while nobody looks, nothing is made. Pictures are PNG or
// text, and the newest one takes the place of an older one that a slow page has not got. Page and script are in this package: Page has a game,
// keys and buttons, and others, such as pipeline/dash, put Script beside an element with data-frames.
package web
