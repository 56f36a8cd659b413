// A compiler with the interface of NVRTC, for tests: it "compiles" any source to PTX with an empty kernel for each name
// expression, says what it was told in its log, and counts. It does not look at C++.
//
// MAJOR and MINOR are its version; WITHOUT_NAMES leaves a function out. What the source says to it:
//     // parameters: .param .u64 x      the parameters of every kernel
//     // fail: text                     a compile error
//     // wait: 100                      milliseconds that it takes
//     // garbage                        what it makes is no code

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 16, ROOM = 16384 };

struct program {
    char *source, *name;
    int name_count;
    char *names[MOST], lowered[MOST][256];
    char log[ROOM], code[ROOM];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int compiled, alive;

static int add(int *number, int by) {
    pthread_mutex_lock(&lock);
    int now = *number += by;
    pthread_mutex_unlock(&lock);
    return now;
}

int fakeCompiled(void) { return add(&compiled, 0); }
int fakeAlive(void) { return add(&alive, 0); }

const char *nvrtcGetErrorString(int code) {
    return code == 6 ? "NVRTC_ERROR_COMPILATION" : code == 5 ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR_OTHER";
}

int nvrtcVersion(int *major, int *minor) {
    *major = MAJOR;
    *minor = MINOR;
    return 0;
}

static const int architectures[] = {75, 80, 90};

int nvrtcGetNumSupportedArchs(int *count) {
    *count = 3;
    return 0;
}

int nvrtcGetSupportedArchs(int *found) {
    memcpy(found, architectures, sizeof architectures);
    return 0;
}

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    struct program *made = calloc(1, sizeof *made);
    made->source = strdup(source);
    made->name = strdup(name);
    for (int index = 0; index < count; ++index) {
        sprintf(made->log + strlen(made->log), "header: %s=%s\n", names[index], headers[index]);
    }
    add(&alive, 1);
    *program = made;
    return 0;
}

int nvrtcDestroyProgram(struct program **program) {
    for (int index = 0; index < (*program)->name_count; ++index) {
        free((*program)->names[index]);
    }
    free((*program)->source);
    free((*program)->name);
    free(*program);
    *program = NULL;
    add(&alive, -1);
    return 0;
}

#ifndef WITHOUT_NAMES
int nvrtcAddNameExpression(struct program *program, const char *name) {
    program->names[program->name_count++] = strdup(name);
    return 0;
}
#endif

// What follows a word in the source, up to the end of the line.
static int said(const struct program *program, const char *word, char *rest) {
    const char *found = strstr(program->source, word);
    if (!found) {
        return 0;
    }
    sscanf(found + strlen(word), "%255[^\n]", rest);
    return 1;
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    char text[256] = "", target[64] = "?";
    add(&compiled, 1);
    for (int index = 0; index < count; ++index) {
        sprintf(program->log + strlen(program->log), "option: %s\n", options[index]);
        sscanf(options[index], "--gpu-architecture=%63s", target);
        if (!strcmp(options[index], "--no-such-option")) {
            return 5;
        }
    }
    if (said(program, "// wait: ", text)) {
        struct timespec time = {0, 1000000L * atoi(text)};
        nanosleep(&time, NULL);
    }
    if (said(program, "// fail: ", text)) {
        sprintf(program->log + strlen(program->log), "%s(1): error: %s\n", program->name, text);
        return 6;
    }
    text[0] = 0;
    said(program, "// parameters: ", text);
    if (strstr(program->source, "// garbage")) {
        strcpy(program->code, "garbage");
        return 0;
    }
    sprintf(program->code, ".version 7.8\n.target %s%s\n.address_size 64\n", strncmp(target, "sm_", 3) ? "sm_" : "",
            strncmp(target, "compute_", 8) ? target : target + 8);
    for (int index = 0; index < program->name_count; ++index) {
        char *lowered = program->lowered[index];
        sprintf(lowered, "_Z%s", program->names[index]);
        for (char *letter = lowered; *letter; ++letter) {
            *letter = strchr("<>,: ", *letter) ? '_' : *letter;
        }
        sprintf(program->code + strlen(program->code), ".visible .entry %s(%s) { ret; }\n", lowered, text);
    }
    return 0;
}

int nvrtcGetLoweredName(struct program *program, const char *name, const char **lowered) {
    for (int index = 0; index < program->name_count; ++index) {
        if (!strcmp(program->names[index], name)) {
            *lowered = program->lowered[index];
            return 0;
        }
    }
    return 10;
}

static int size_of(const char *text, size_t *size) {
    *size = strlen(text) + 1;
    return 0;
}

static int copy(const char *text, char *to) {
    strcpy(to, text);
    return 0;
}

int nvrtcGetProgramLogSize(struct program *program, size_t *size) { return size_of(program->log, size); }
int nvrtcGetProgramLog(struct program *program, char *to) { return copy(program->log, to); }
int nvrtcGetCUBINSize(struct program *program, size_t *size) { return size_of(program->code, size); }
int nvrtcGetCUBIN(struct program *program, char *to) { return copy(program->code, to); }
int nvrtcGetPTXSize(struct program *program, size_t *size) { return size_of(program->code, size); }
int nvrtcGetPTX(struct program *program, char *to) { return copy(program->code, to); }
