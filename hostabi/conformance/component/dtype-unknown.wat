;; An unknown type of a column.
;; include guest
;; include slot
(data (i32.const 0x55c) "\63")
