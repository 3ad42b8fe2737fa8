;; A column without a name.
;; include guest
;; include slot
(data (i32.const 0x554) "\00")
