<?php
/**
 * Texts for the service's codes on the screens of a shop.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** Words in place of codes. A code that is not listed here is shown as it is: a later service may have more. */
final class Words {
	/**
	 * Where an order is.
	 *
	 * @param string $state One of Orders::state().
	 */
	public static function state( string $state ): string {
		$words = array(
			'none'       => __( 'Notice not begun', 'countersign-woocommerce' ),
			'open'       => __( 'Waiting for the buyer', 'countersign-woocommerce' ),
			'undecided'  => __( 'Not decided yet', 'countersign-woocommerce' ),
			'cleared'    => __( 'Cleared', 'countersign-woocommerce' ),
			'overridden' => __( 'Manual override', 'countersign-woocommerce' ),
			'not_needed' => __( 'No notice needed', 'countersign-woocommerce' ),
			'refused'    => __( 'Refused', 'countersign-woocommerce' ),
			'declined'   => __( 'Declined by the buyer', 'countersign-woocommerce' ),
			'changed'    => __( 'Changed', 'countersign-woocommerce' ),
			'expired'    => __( 'The link has expired', 'countersign-woocommerce' ),
			'cancelled'  => __( 'Cancelled', 'countersign-woocommerce' ),
		);
		return $words[ $state ] ?? $state;
	}

	/**
	 * The texts of the order's notes.
	 *
	 * @param string $state What it is now.
	 * @param array  $data  What is known of it.
	 */
	public static function note( string $state, array $data ): string {
		$words = array(
			/* translators: %s: an id */
			'open'       => sprintf( __( 'the buyer was led to the notice (%s).', 'countersign-woocommerce' ), $data['session'] ),
			/* translators: %s: an id */
			'undecided'  => sprintf( __( 'the buyer initialed the notice (%s). The decision is not made yet.', 'countersign-woocommerce' ), $data['ack'] ),
			/* translators: 1: an id, 2: an id */
			'cleared'    => sprintf( __( 'cleared. The notice was initialed (%1$s), and the order may be paid and shipped (%2$s).', 'countersign-woocommerce' ), $data['ack'], $data['clearance'] ),
			/* translators: %s: an id */
			'overridden' => sprintf( __( 'Manual override %s: shipped on your own responsibility.', 'countersign-woocommerce' ), $data['override'] ),
			'not_needed' => __( 'this order needs no notice.', 'countersign-woocommerce' ),
			/* translators: %s: reasons */
			'refused'    => sprintf( __( 'refused: %s. Do not ship.', 'countersign-woocommerce' ), self::reasons( $data['reasons'] ) ),
			'declined'   => __( 'the buyer declined to initial the notice.', 'countersign-woocommerce' ),
			'expired'    => __( 'the link to the notice expired before the buyer was finished.', 'countersign-woocommerce' ),
			'changed'    => __( 'the address or the products were changed after the decision, so it does not count any more.', 'countersign-woocommerce' ),
			'cancelled'  => __( 'the link to the notice was cancelled.', 'countersign-woocommerce' ),
		);
		return $words[ $state ] ?? '';
	}

	/**
	 * For a buyer: why an address does not do.
	 *
	 * @param string[] $place Country, state and ZIP code.
	 */
	public static function address( array $place ): string {
		list( $country, $state, $zip ) = $place;
		if ( '' === $country . $zip ) {
			return __( 'These products need a shipping address, and this order has none, so it cannot be placed here. Please contact the shop.', 'countersign-woocommerce' );
		}
		return 'US' !== $country
			? __( 'These products are sent to an address in the United States only: please enter one with its ZIP code.', 'countersign-woocommerce' )
			/* translators: %s: what was typed */
			: sprintf( __( 'Please look at state and ZIP code once more: “%s”. A ZIP code has five digits, such as 94105 or 02134.', 'countersign-woocommerce' ), trim( "{$state} {$zip}" ) );
	}

	/**
	 * Why an order is not cleared, in brackets or after a colon.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function why( $order ): string {
		return implode( ': ', array_filter( array( self::state( Orders::state( $order ) ), self::reasons( Orders::data( $order )['reasons'] ) ) ) );
	}

	/**
	 * Advice for staff about a state; empty if there is nothing to do.
	 *
	 * @param string $state One of Orders::state().
	 */
	public static function advice( string $state ): string {
		$again = __( 'Send the buyer the link, so that the buyer goes through the notice again.', 'countersign-woocommerce' );
		$words = array(
			'none'       => __( 'The buyer has not been led to the notice yet. Send the buyer the link.', 'countersign-woocommerce' ),
			'open'       => __( 'The buyer has the link and is not finished. You can send it again.', 'countersign-woocommerce' ),
			'undecided'  => __( 'The buyer is finished, and the service has not decided. Press “Ask again”.', 'countersign-woocommerce' ),
			'refused'    => __( 'Do not ship. “Ask again” asks for another decision on the same notice, such as after a manual override; with the link, the buyer goes through the notice again.', 'countersign-woocommerce' ),
			'overridden' => __( 'It is not cleared: you ship it on your own responsibility, with the duties below. No fulfilment is reported, so keep the proof of delivery.', 'countersign-woocommerce' ),
			'declined'   => __( 'The buyer did not initial the notice. Cancel the order, or send the link if the buyer wants to go through the notice after all.', 'countersign-woocommerce' ),
			'changed'    => __( 'The address or the products were changed after the decision, so it does not count any more.', 'countersign-woocommerce' ) . ' ' . $again,
			'expired'    => $again,
			'cancelled'  => $again,
		);
		return $words[ $state ] ?? '';
	}

	/**
	 * Why an order is not cleared.
	 *
	 * @param string[] $codes Reasons of the service.
	 */
	public static function reasons( array $codes ): string {
		$words = array(
			'acknowledgment_not_found'    => __( 'the service does not know the notice of this order', 'countersign-woocommerce' ),
			'acknowledgment_erased'       => __( 'the personal data of the notice were erased', 'countersign-woocommerce' ),
			'session_mismatch'            => __( 'the notice is of another checkout', 'countersign-woocommerce' ),
			'acknowledgment_already_used' => __( 'the notice was used for another order', 'countersign-woocommerce' ),
			'order_already_fulfilled'     => __( 'the order was reported as shipped', 'countersign-woocommerce' ),
			'acknowledgment_too_old'      => __( 'the notice was initialed too long ago', 'countersign-woocommerce' ),
			'notice_not_in_force'         => __( 'the version of the notice is not in force any more', 'countersign-woocommerce' ),
			'product_class_missing'       => __( 'the class of the product is missing', 'countersign-woocommerce' ),
			'notice_not_sufficient'       => __( 'a notice is not enough for this product: it is not shipped to buyers', 'countersign-woocommerce' ),
			'buyer_not_found'             => __( 'the service does not know the buyer', 'countersign-woocommerce' ),
			'buyer_mismatch'              => __( 'the notice is of another buyer', 'countersign-woocommerce' ),
			'buyer_not_verified'          => __( 'the buyer is not verified', 'countersign-woocommerce' ),
			'buyer_requires_input'        => __( 'the buyer has to do the identity check again', 'countersign-woocommerce' ),
			'buyer_expired'               => __( 'the verification of the buyer has expired', 'countersign-woocommerce' ),
			'buyer_revoked'               => __( 'the verification of the buyer was revoked', 'countersign-woocommerce' ),
			'verification_withdrawn'      => __( 'the identity check was withdrawn: the buyer has to do another one', 'countersign-woocommerce' ),
			'refused_by_vendor'           => __( 'the shop refuses this buyer', 'countersign-woocommerce' ),
			'zip_mismatch'                => __( 'the parcel’s ZIP code is not the one that the buyer has proved', 'countersign-woocommerce' ),
			'address_mismatch'            => __( 'address and ZIP code do not agree', 'countersign-woocommerce' ),
			'age_not_proved'              => __( 'the age that is required was not proved', 'countersign-woocommerce' ),
			'address_not_proved'          => __( 'the address was not proved', 'countersign-woocommerce' ),
			'document_expired'            => __( 'the buyer’s document has expired', 'countersign-woocommerce' ),
		);
		return self::joined( $codes, $words );
	}

	/**
	 * The obligation for a parcel.
	 *
	 * @param array $one An obligation of a clearance.
	 */
	public static function obligation( array $one ): string {
		$type = (string) ( $one['type'] ?? '' );
		if ( 'package_label' === $type && is_string( $one['text'] ?? null ) ) {
			/* translators: %s: words for the label */
			return sprintf( __( 'Print on the parcel, word for word: “%s”', 'countersign-woocommerce' ), $one['text'] );
		}
		if ( 'adult_signature' === $type ) {
			return __( 'Hand it over only against the signature of an adult', 'countersign-woocommerce' );
		}
		if ( 'compared' === $type && 'zip' === ( $one['what'] ?? '' ) ) {
			return __( 'Send it only to the ZIP code of this order: it was compared with the buyer’s proved address', 'countersign-woocommerce' );
		}
		return implode( ': ', array_filter( $one, 'is_string' ) );
	}

	/**
	 * Names of products.
	 *
	 * @param string[] $classes Classes.
	 */
	public static function classes( array $classes ): string {
		return self::joined( $classes, Products::choices() );
	}

	/**
	 * Why a request failed, for staff.
	 *
	 * @param string $code The reason of a Service_Error.
	 */
	public static function trouble( string $code ): string {
		$words = array(
			'unreachable'         => __( 'the service does not respond. Is the address right, and is the service running?', 'countersign-woocommerce' ),
			'not_configured'      => __( 'address or key are missing', 'countersign-woocommerce' ),
			'unexpected_response' => __( 'something responds at this address that is not a Countersign service', 'countersign-woocommerce' ),
			'no_such_order'       => __( 'there is no such order', 'countersign-woocommerce' ),
			'busy'                => __( 'the order is being changed at the moment. Try again', 'countersign-woocommerce' ),
			'unauthorized'        => __( 'the service does not know the key', 'countersign-woocommerce' ),
			'invalid_api_key'     => __( 'the service does not know the key, or it was revoked', 'countersign-woocommerce' ),
			'forbidden'           => __( 'the key may not do this: ask the operator of the service for a key without limits', 'countersign-woocommerce' ),
			'rate_limited'        => __( 'too many requests. Try again in some minutes', 'countersign-woocommerce' ),
		);
		return isset( $words[ $code ] ) ? $words[ $code ] . " ({$code})" : $code;
	}

	/**
	 * Codes in words, with commas.
	 *
	 * @param string[] $codes Codes.
	 * @param array    $words Words by code.
	 */
	private static function joined( array $codes, array $words ): string {
		return implode(
			', ',
			array_map(
				static function ( $code ) use ( $words ) {
					return $words[ $code ] ?? $code;
				},
				$codes
			)
		);
	}
}
