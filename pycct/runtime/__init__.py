"""Services below all geometry: threads, locks, floating-point environment, versions, enums.

The thread pool runs rows of work for crowds, teams and mesh builds. `lock` serialises changes of a
scene, `atomic` and `prefetch` wrap compiler built-ins, and `fenv` sets the default rounding for the
length of a call. `build_info` and `version` describe this build; `enums` defines the public enums.

Imports nothing of the package.
"""
