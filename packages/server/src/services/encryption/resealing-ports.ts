import type { Logger } from 'pino'
import type { Blobs } from '../blobs/blobs.ts'
import type { ForgetPorts } from '../retention/forget-ports.ts'

/** The parts of the service with which the encryption of collections with records changes. */
export type ResealingPorts = ForgetPorts & {
  readonly log: Logger
  readonly ownsDatabase: boolean
  readonly blobs: Blobs
}
