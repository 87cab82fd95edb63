import { type Static, Type } from 'typebox'
import type { KeyCommand } from '../sealing/key-command.ts'

/** Seconds where the file says nothing. */
const timeoutSecondsDefault = 10
const cacheSecondsDefault = 300

/** The member `encryption_key_command` of the configuration file. */
export const EncryptionKeyCommand = Type.Object(
  {
    id: Type.String({
      pattern: '^[A-Za-z0-9._:/@-]{1,200}$',
      description:
        "the name of the manager's key, which the program is told; when it changes, all data keys are wrapped anew",
    }),
    program: Type.String({
      minLength: 1,
      description: 'the program: a path, or a name that is looked for in PATH; no shell',
    }),
    arguments: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 100,
        description: 'what it is called with, before "wrap" or "unwrap"',
      }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 60,
        description: `the time after which it is killed; ${timeoutSecondsDefault} when not given`,
      }),
    ),
    cache_seconds: Type.Optional(
      Type.Integer({
        minimum: 30,
        maximum: 86_400,
        description: `the time for which unwrapped keys stay in memory; ${cacheSecondsDefault} when not given`,
      }),
    ),
    unwrap_only: Type.Optional(
      Type.Boolean({
        description: 'it opens what it wrapped and wraps nothing more: the way back to a file',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'a program by which an external key manager wraps and unwraps data keys; see docs/encryption.md',
  },
)

export function readKeyCommand(
  given: Static<typeof EncryptionKeyCommand> | undefined,
): KeyCommand | undefined {
  if (given === undefined) return undefined
  const {
    id,
    program,
    arguments: list = [],
    timeout_seconds: seconds = timeoutSecondsDefault,
  } = given
  return {
    ...{ id, program, arguments: list, timeoutMs: seconds * 1000 },
    cacheMs: (given.cache_seconds ?? cacheSecondsDefault) * 1000,
    unwrapOnly: given.unwrap_only ?? false,
  }
}
