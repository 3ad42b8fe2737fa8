;; A flag of the head that version 1 does not have is a hint: the host ignores it.
;; include guest
(data (i32.const 0x443) "\40")
