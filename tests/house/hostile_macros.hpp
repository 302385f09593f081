// Macros that X11, Windows, termios, complex.h, test frameworks and old C projects define.
// Included as text after the standard headers and before memfit's: a user's include order can do
// that.
#define Always 2
#define B0 0000000
#define Bool int
#define CHECK(...) hostile
#define CHECK_EQ(...) hostile
#define Complex hostile
#define DEBUG 1
#define DELETE 3
#define DOMAIN 1
#define ERROR 0
#define EXPECT(...) hostile
#define False 0
#define I hostile
#define IN
#define INFINITE 0xffffffff
#define LOG(...) hostile
#define MAX(...) hostile
#define MIN(...) hostile
#define None 0
#define OUT
#define OPTIONAL
#define OVERFLOW 3
#define STRICT 1
#define Status int
#define Success 0
#define True 1
#define UNDERFLOW 4
#define check(...) hostile
#define far
#define interface struct
#define linux 1
#define major(x) hostile
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define minor(x) hostile
#define near
#define require(...) hostile
#define small char
#define unix 1
#define verify(...) hostile
