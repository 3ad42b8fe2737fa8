;; A reward that is optional: every environment must have one.
;; include guest
(data (i32.const 0x588) "\12")
