;; A string that lies outside the table.
;; include guest
(data (i32.const 0x468) "\20")
