;; A string with a control character, which would command a terminal.
;; include guest
(data (i32.const 0xc03) "\1b")
