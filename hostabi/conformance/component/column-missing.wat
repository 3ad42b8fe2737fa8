;; A column that is not optional and that the block has not ends the run.
;; include guest
;; include slot
(data (i32.const 0x588) "\00")
