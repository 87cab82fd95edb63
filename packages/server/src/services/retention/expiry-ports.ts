import type { Logger } from 'pino'
import type { Uses } from '../call.ts'

/** The parts of the service with which records expire. */
export type ExpiryPorts = Uses<
  'world' | 'database' | 'tenants' | 'viewBuilder' | 'recordNameKey' | 'ownsDatabase'
> & { readonly log: Logger }
