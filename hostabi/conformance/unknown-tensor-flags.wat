;; A flag of a tensor that version 1 does not have.
;; include guest
(data (i32.const 0x50b) "\40")
