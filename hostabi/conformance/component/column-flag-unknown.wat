;; An unknown flag of a column.
;; include guest
;; include slot
(data (i32.const 0x558) "\04")
