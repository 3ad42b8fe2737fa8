;; A string outside of the table.
;; include guest
;; include slot
(data (i32.const 0x430) "\ff\ff\00\00")
