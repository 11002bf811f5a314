<?php
/**
 * What the service said of an order, and the questions that are sent about it.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** This order cannot be sold as it is. The message is for the buyer. */
final class Cannot_Sell extends \RuntimeException {}

/**
 * Acts on an order. Each changes the object that it is given; the caller saves it.
 *
 * If the service refuses or does not respond, they throw a Service_Error and change nothing: that is a no.
 */
final class Orders {
	/** The order's data: an array with the members of DEFAULTS. */
	const META     = '_countersign';
	const SESSION  = '_countersign_session';
	const BUYER    = '_countersign_buyer';
	const DEFAULTS = array(
		// The order and the shop that all of this is about: what was copied from another one does not count, see data().
		'order'       => 0,
		'shop'        => '',
		// Random name of the order at the service.
		'reference'   => '',
		// How many sessions of the order have ended.
		'round'       => 0,
		// What was asked about, see subject(): another address or class is another question.
		'subject'     => '',
		'classes'     => array(),
		'zip'         => '',
		// The state on which a decision relies that less is needed; empty: it relies on none.
		'residence'   => '',
		'session'     => '',
		// The buyer whose initials alone the session asks for; empty: it has an identity check.
		'known'       => '',
		// Of the session, or not_needed.
		'status'      => '',
		'ack'         => '',
		// Of each acknowledgment of the order, also of one for another address: see Receipts.
		'receipts'    => array(),
		'buyer'       => '',
		'clearance'   => '',
		// true, false, or null: not decided.
		'cleared'     => null,
		'reasons'     => array(),
		// The manual override of a refusal; empty: there is none.
		'override'    => '',
		'obligations' => array(),
		// A Unix time.
		'until'       => 0,
		'shipped'     => 0,
		'closed'      => '',
	);

	/**
	 * An order, or null.
	 *
	 * @param int $id Its id, that of anything else, or 0.
	 */
	public static function find( int $id ) {
		$order = $id > 0 ? wc_get_order( $id ) : null;
		return $order instanceof \WC_Order ? $order : null;
	}

	/**
	 * What is stored with an order, whichever order it is about.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function stored( $order ): array {
		$stored = $order->get_meta( self::META );
		return array_merge( self::DEFAULTS, is_array( $stored ) ? $stored : array() );
	}

	/**
	 * The stored data of an order. A copy, a renewal of a subscription or an order of a copied shop has the fields of another order,
	 * and was not begun: nobody has initialed a notice for it.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function data( $order ): array {
		$stored = self::stored( $order );
		return $stored['order'] === $order->get_id() && in_array( $stored['shop'], Settings::shops(), true ) ? $stored : self::DEFAULTS;
	}

	/**
	 * Note changes on the order.
	 *
	 * @param \WC_Order $order   The order.
	 * @param array     $changes Members of DEFAULTS.
	 */
	private static function note( $order, array $changes ): void {
		$about = array( 'order' => $order->get_id(), 'shop' => Settings::shop() );
		$data  = array_merge( self::data( $order ), $changes, $about );
		$order->update_meta_data( self::META, $data );
		$order->update_meta_data( self::SESSION, $data['session'] );
		$order->update_meta_data( self::BUYER, $data['buyer'] );
	}

	/**
	 * Do something with an order while no other request does: decisions are stored in the order in which they were made.
	 *
	 * @param int      $order_id The order.
	 * @param callable $act      Takes the order; it is saved afterwards.
	 * @param int      $wait     How many seconds the other request may take.
	 * @return \WC_Order As it is now.
	 * @throws Service_Error If another request takes too long, or the act fails.
	 */
	public static function locked( int $order_id, callable $act, int $wait = 10 ) {
		global $wpdb;
		$lock = 'countersign_' . md5( DB_NAME . $wpdb->prefix . $order_id );
		if ( '1' !== (string) $wpdb->get_var( $wpdb->prepare( 'SELECT GET_LOCK(%s, %d)', $lock, $wait ) ) ) {
			throw new Service_Error( 'busy', __( 'The order is being changed.', 'countersign-woocommerce' ) );
		}
		try {
			$order = self::find( $order_id );
			if ( ! $order ) {
				throw new Service_Error( 'no_such_order' );
			}
			// Data that another request stored since this one read it.
			$order->read_meta_data( true );
			$act( $order );
			$order->save();
			return $order;
		} finally {
			$wpdb->get_var( $wpdb->prepare( 'SELECT RELEASE_LOCK(%s)', $lock ) );
		}
	}

	/**
	 * The classes of what is in the order: as its items keep them, and as they were when it was begun, or the order that it is a copy of.
	 *
	 * @param \WC_Order $order The order.
	 * @return string[] Sorted.
	 */
	public static function classes( $order ): array {
		$classes = array_values( array_unique( array_merge( Products::classes_of_items( $order->get_items() ), self::stored( $order )['classes'] ) ) );
		sort( $classes );
		return $classes;
	}

	/**
	 * Whether the order has anything that the service has to say yes to.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function is_gated( $order ): bool {
		return array() !== self::classes( $order );
	}

	/**
	 * The subject of a decision: if any of it changes, the decision no longer counts.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function subject( $order ): string {
		return hash( 'sha256', (string) wp_json_encode( array_merge( Need::place( $order ), self::classes( $order ) ) ) );
	}

	/**
	 * Where the order is. Only `cleared`, `overridden` and `not_needed` are a yes, and only for what was asked about.
	 *
	 * @param \WC_Order $order The order.
	 * @return string none, changed, open, undecided, cleared, overridden, refused, declined, expired, cancelled or not_needed.
	 */
	public static function state( $order ): string {
		$data = self::data( $order );
		if ( '' === $data['status'] ) {
			return 'none';
		}
		if ( self::subject( $order ) !== $data['subject'] || ( '' !== $data['residence'] && Need::residence( $order ) !== $data['residence'] ) ) {
			return 'changed';
		}
		if ( 'completed' !== $data['status'] ) {
			return $data['status'];
		}
		if ( null === $data['cleared'] ) {
			return 'undecided';
		}
		if ( true === $data['cleared'] ) {
			return 'cleared';
		}
		return '' === $data['override'] ? 'refused' : 'overridden';
	}

	/**
	 * Whether the order may be paid, by what is stored: nothing is sent.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function may_be_paid( $order ): bool {
		return ! self::is_gated( $order ) || ( self::was_cleared( $order ) && self::data( $order )['until'] > time() );
	}

	/**
	 * Whether the last decision is a yes, however old it is.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function was_cleared( $order ): bool {
		return ! self::is_gated( $order ) || in_array( self::state( $order ), array( 'cleared', 'overridden', 'not_needed' ), true );
	}

	/**
	 * What an order is begun with.
	 *
	 * @param \WC_Order $order The order.
	 * @return array Members of DEFAULTS.
	 */
	private static function begun( $order ): array {
		$data = self::data( $order );
		return array(
			'reference' => '' === $data['reference'] ? 'cs_' . bin2hex( random_bytes( 16 ) ) : $data['reference'],
			'round'     => (int) $data['round'] + ( in_array( $data['status'], array( '', 'open', 'not_needed' ), true ) ? 0 : 1 ),
			'subject'   => self::subject( $order ),
			'classes'   => self::classes( $order ),
			'zip'       => Need::place( $order )[2],
			'residence' => Need::residence( $order ),
			'known'     => 'open' === $data['status'] ? $data['known'] : self::known( $order ),
			'receipts'  => $data['receipts'],
		) + self::DEFAULTS;
	}

	/**
	 * The buyer of the customer's last decided order, if it was cleared, and the shop says that who is signed in counts as that buyer.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function known( $order ): string {
		$customer = get_current_user_id();
		if ( 'account' !== Settings::get( 'customers' ) || $customer < 1 || $order->get_customer_id() !== $customer ) {
			return '';
		}
		foreach ( wc_get_orders( array( 'customer_id' => $customer, 'type' => 'shop_order', 'limit' => 10, 'orderby' => 'date', 'order' => 'DESC' ) ) as $one ) {
			$data = self::data( $one );
			if ( '' !== $data['buyer'] && null !== $data['cleared'] ) {
				// A buyer of the sandbox is none with a live key.
				return $data['cleared'] && ( 0 === strpos( $data['buyer'], 'cbid_test_' ) ) === Settings::is_test() ? $data['buyer'] : '';
			}
		}
		return '';
	}

	/**
	 * Note that an order that was not begun needs nothing, if that is so.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the session for another address cannot be ended.
	 */
	public static function excuse( $order ): void {
		if ( ! in_array( self::state( $order ), array( 'none', 'changed', 'expired', 'cancelled', 'not_needed' ), true ) || ! Need::is_nothing( $order, self::classes( $order ) ) ) {
			return;
		}
		self::end_session( $order );
		self::note( $order, array( 'status' => 'not_needed', 'until' => time() + DAY_IN_SECONDS ) + self::begun( $order ) );
	}

	/**
	 * Begin a session, or go on with the one that is open.
	 *
	 * @param \WC_Order $order The order, which is saved.
	 * @return string The buyer's link; empty if the order may be paid.
	 * @throws Service_Error If the service refuses or does not respond.
	 * @throws Cannot_Sell   If this order cannot be sold.
	 */
	public static function begin( $order ): string {
		self::settle( $order );
		if ( self::may_be_paid( $order ) ) {
			return '';
		}
		if ( 'changed' === self::state( $order ) ) {
			self::end_session( $order );
		}
		$begun  = self::begun( $order );
		$needed = Need::of( $order, $begun['classes'] );
		if ( array() === $needed ) {
			throw new Cannot_Sell( esc_html( Words::address( Need::place( $order ) ) ) );
		}
		self::excuse( $order );
		if ( self::may_be_paid( $order ) ) {
			return '';
		}
		foreach ( (array) ( $needed['warnings'] ?? array() ) as $warning ) {
			if ( 'not_sufficient' === ( $warning['type'] ?? '' ) ) {
				throw new Cannot_Sell( esc_html__( 'This product is not shipped to buyers.', 'countersign-woocommerce' ) );
			}
		}
		$asked   = static function ( $notice ) {
			return 'not_required' !== ( $notice['required'] ?? '' );
		};
		$notices = array_column( array_filter( (array) ( $needed['notices'] ?? array() ), $asked ), 'notice_id' );
		if ( 1 !== count( $notices ) ) {
			throw new Cannot_Sell(
				count( $notices ) > 1
					? esc_html__( 'These products need an order each.', 'countersign-woocommerce' )
					: esc_html__( 'This product cannot be sold to this address at the moment.', 'countersign-woocommerce' )
			);
		}
		$body = array(
			'session_id'      => $begun['reference'],
			'order_reference' => self::number( $order ),
			'notice_id'       => $notices[0],
			'collect'         => '' !== $begun['known'] || 'not_required' === ( $needed['identity']['required'] ?? '' ) ? array( 'acknowledgment' ) : array( 'identity', 'acknowledgment' ),
			'return_url'      => $order->get_checkout_payment_url(),
			'shipping_zip'    => $begun['zip'],
			'product_classes' => $begun['classes'],
			'locale'          => 0 === strpos( determine_locale(), 'es' ) ? 'es' : '',
		) + array_filter( array( 'cbid' => $begun['known'] ) );
		// The same order with the same content has the same session until that ends: so the link need not be stored.
		$key  = "{$begun['reference']}-{$begun['round']}-" . substr( hash( 'sha256', (string) wp_json_encode( $body ) ), 0, 32 );
		$made = Client::post( '/v1/checkout_sessions', $body, $key );
		if ( ! is_string( $made['url'] ?? null ) || ! is_string( $made['checkout_session_id'] ?? null ) ) {
			throw new Service_Error( 'unexpected_response' );
		}
		self::note( $order, array( 'status' => 'open', 'session' => $made['checkout_session_id'] ) + $begun );
		return $made['url'];
	}

	/**
	 * What the order is called at the service: the session, the acknowledgment and each decision name it.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function number( $order ): string {
		return mb_substr( (string) $order->get_order_number(), 0, 64 );
	}

	/**
	 * Read the session of an order that waits for its buyer, and store how it ended and what was decided at its end. It asks for no decision.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function refresh( $order ): void {
		$data = self::data( $order );
		if ( 'open' === $data['status'] ) {
			$session = Client::get( '/v1/checkout_sessions/' . rawurlencode( $data['session'] ) );
			if ( 'open' !== ( $session['status'] ?? 'open' ) ) {
				$decided  = is_bool( $session['cleared'] ?? null ) && is_string( $session['clearance_id'] ?? null )
					? self::decision( Client::get( '/v1/clearances/' . rawurlencode( $session['clearance_id'] ) ) )
					: array();
				$ack      = (string) ( $session['ack_id'] ?? '' );
				$receipts = $data['receipts'];
				if ( '' !== $ack && is_string( $session['receipt'] ?? null ) ) {
					$receipts[ $ack ] = $session['receipt'];
				}
				self::note(
					$order,
					array(
						'status'   => (string) $session['status'],
						'ack'      => $ack,
						'receipts' => $receipts,
						'buyer'    => (string) ( $session['cbid'] ?? '' ),
					) + $decided
				);
			}
		}
	}

	/**
	 * The content of a clearance.
	 *
	 * @param array $decision As the service gives it.
	 * @return array Members of DEFAULTS.
	 */
	private static function decision( array $decision ): array {
		$override = true === ( $decision['overridden'] ?? null ) ? (string) ( $decision['override_id'] ?? '' ) : '';
		return array(
			'clearance'   => (string) ( $decision['clearance_id'] ?? '' ),
			'cleared'     => true === ( $decision['cleared'] ?? null ),
			'reasons'     => array_map( 'strval', (array) ( $decision['reasons'] ?? array() ) ),
			'override'    => $override,
			'obligations' => (array) ( $decision['obligations'] ?? array() ),
			// What is not cleared has no end of its own: it is asked about again as often as what needs nothing.
			'until'       => '' === $override ? (int) strtotime( (string) ( $decision['expires_at'] ?? '' ) ) : time() + DAY_IN_SECONDS,
		);
	}

	/**
	 * Read the session, and ask for a decision if there is none, or none that still counts. Never because somebody opened a page.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function settle( $order ): void {
		self::refresh( $order );
		$state = self::state( $order );
		if ( 'undecided' === $state || ( in_array( $state, array( 'cleared', 'overridden' ), true ) && ! self::may_be_paid( $order ) ) ) {
			self::decide( $order );
		}
	}

	/**
	 * End the session that is open: it was for what the order was, or the order is cancelled.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function end_session( $order ): void {
		$data = self::data( $order );
		if ( 'open' === $data['status'] ) {
			Client::post( '/v1/checkout_sessions/' . rawurlencode( $data['session'] ) . '/cancel', array() );
			self::note( $order, array( 'status' => 'cancelled' ) );
			$order->add_order_note( 'Countersign: ' . Words::note( 'cancelled', $data ) );
		}
	}

	/**
	 * Ask whether the order may ship: the last decision counts.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function decide( $order ): void {
		$data = self::data( $order );
		if ( 'completed' !== $data['status'] || $data['shipped'] > 0 || 'changed' === self::state( $order ) ) {
			return;
		}
		try {
			$decision = Client::post(
				'/v1/clearances',
				array(
					'ack_id'          => $data['ack'],
					'cbid'            => $data['buyer'],
					'session_id'      => $data['reference'],
					'order_reference' => self::number( $order ),
					'shipping_zip'    => $data['zip'],
					'product_classes' => $data['classes'],
				)
			);
		} catch ( Service_Error $error ) {
			if ( 'order_reference_mismatch' !== $error->reason ) {
				throw $error;
			}
			// Initialed for another order, whoever wrote it here: this one was not begun.
			self::note( $order, array( 'classes' => $data['classes'] ) + self::DEFAULTS );
			return;
		}
		$shipped = true === ( $decision['already_shipped'] ?? null ) ? array( 'shipped' => time() ) : array();
		self::note( $order, self::decision( $decision ) + $shipped );
	}

	/**
	 * Ask about an order for staff, whatever it waits for.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function ask_again( $order ): void {
		if ( 'open' === self::state( $order ) ) {
			self::settle( $order );
		} else {
			self::decide( $order );
		}
	}

	/**
	 * Report what was done with the parcel of a cleared order.
	 *
	 * @param \WC_Order $order  The order.
	 * @param array     $report carrier, tracking_number, adult_signature_obtained.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function report( $order, array $report ): void {
		$data = self::data( $order );
		$body = array_filter( $report ) + array( 'order_reference' => self::number( $order ) );
		$key  = $data['clearance'] . '-' . substr( hash( 'sha256', (string) wp_json_encode( $body ) ), 0, 32 );
		$made = Client::post( '/v1/clearances/' . rawurlencode( $data['clearance'] ) . '/fulfilment', $body, $key );
		self::note( $order, array( 'shipped' => $data['shipped'] > 0 ? $data['shipped'] : time(), 'closed' => (string) ( $made['closed_at'] ?? '' ) ) );
	}

	/**
	 * Report that a cleared order was paid.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function report_payment( $order ): void {
		$clearance = self::data( $order )['clearance'];
		$paid      = $order->get_date_paid();
		if ( '' !== $clearance && $paid ) {
			$body = array( 'paid_at' => gmdate( 'Y-m-d\TH:i:s\Z', $paid->getTimestamp() ), 'order_reference' => self::number( $order ) );
			Client::post( '/v1/clearances/' . rawurlencode( $clearance ) . '/fulfilment', $body );
		}
	}
}
