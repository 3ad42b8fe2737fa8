;; Two groups with names, of one agent and of two: those of the second choose among three values and observe three numbers. The environment does 1 where all are at their last value.
;; include groups
