import { Type } from 'typebox'

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
        description: 'the time after which it is killed; 10 when not given',
      }),
    ),
    cache_seconds: Type.Optional(
      Type.Integer({
        minimum: 30,
        maximum: 86_400,
        description: 'the time for which unwrapped keys stay in memory; 300 when not given',
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
