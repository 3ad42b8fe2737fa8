package graph

// What tests outside of the package look at besides: they use the kinds of graphtest, which imports it.
const MaxProblems = maxProblems

var AddCorpus = addCorpus
