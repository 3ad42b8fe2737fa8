;; A column of another type than the guest names ends the run.
;; include guest
;; include slot
(data (i32.const 0x55c) "\01")
