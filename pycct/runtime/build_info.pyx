# cython: language_level=3
"""Build of the compiled modules: compiler, instruction set, sanitizer and bounds checks."""
from pycct.runtime.abi cimport ABI_VERSION as _ABI_VERSION

cdef extern from *:
    """
    #define PYCCT_TEXT_(x) #x
    #define PYCCT_TEXT(x) PYCCT_TEXT_(x)

    #if defined(__clang__)
        #define PYCCT_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
        #define PYCCT_COMPILER "gcc " __VERSION__
    #elif defined(_MSC_VER)
        #define PYCCT_COMPILER "msvc " PYCCT_TEXT(_MSC_FULL_VER)
    #else
        #define PYCCT_COMPILER "unknown"
    #endif

    #if defined(__x86_64__) || defined(_M_X64)
        #if defined(__AVX512F__)
            #define PYCCT_INSTRUCTIONS "x86-64 with AVX-512"
        #elif defined(__AVX2__)
            #define PYCCT_INSTRUCTIONS "x86-64 with AVX2"
        #elif defined(__AVX__)
            #define PYCCT_INSTRUCTIONS "x86-64 with AVX"
        #elif defined(__SSE4_2__)
            #define PYCCT_INSTRUCTIONS "x86-64 with SSE4.2"
        #else
            #define PYCCT_INSTRUCTIONS "x86-64 with SSE2"
        #endif
    #elif defined(__aarch64__) || defined(_M_ARM64)
        #if defined(__ARM_FEATURE_SVE)
            #define PYCCT_INSTRUCTIONS "aarch64 with SVE"
        #else
            #define PYCCT_INSTRUCTIONS "aarch64 with NEON"
        #endif
    #else
        #define PYCCT_INSTRUCTIONS "other"
    #endif

    #if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        #define PYCCT_SANITIZED 1
    #elif defined(__has_feature)
        #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
            #define PYCCT_SANITIZED 1
        #endif
    #endif
    #ifndef PYCCT_SANITIZED
        #define PYCCT_SANITIZED 0
    #endif

    #ifndef PYCCT_CHECKS        /* setup.py defines it with PYCCT_DEBUG=1 */
        #define PYCCT_CHECKS 0
    #endif
    """
    const char* PYCCT_COMPILER
    const char* PYCCT_INSTRUCTIONS
    int PYCCT_SANITIZED
    int PYCCT_CHECKS

ABI_VERSION = <int>_ABI_VERSION
COMPILER = PYCCT_COMPILER.decode("ascii", "replace")
INSTRUCTION_SET = PYCCT_INSTRUCTIONS.decode("ascii")
SANITIZED = bool(PYCCT_SANITIZED)
# True if every index is checked against its bounds.
CHECKS_BOUNDS = bool(PYCCT_CHECKS)
