;; A module with _start is a command, which runs once; an environment is stepped.
;; include guest
(func (export "_start"))
