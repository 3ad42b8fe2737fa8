;; A need that version 1 has: a host without reset_param refuses it by that name.
;; include guest
(data (i32.const 0x410) "\80")
