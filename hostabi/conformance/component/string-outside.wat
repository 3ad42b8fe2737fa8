;; A string that lies outside the table.
;; include guest
;; include slot
(data (i32.const 0x430) "\50\01")
