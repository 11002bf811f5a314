/**
 * The way to the notice, for the block checkout.
 *
 * https://developer.woocommerce.com/docs/block-development/cart-and-checkout-blocks/checkout-payment-methods/payment-method-integration/
 */
( function ( wc, wp ) {
	const data = wc.wcSettings.getSetting( 'countersign_data', {} );
	const words = wp.element.createElement( 'p', null, data.description );
	wc.wcBlocksRegistry.registerPaymentMethod( {
		name: 'countersign',
		label: wp.element.createElement( 'span', null, data.title ),
		ariaLabel: data.title,
		content: words,
		edit: words,
		placeOrderButtonLabel: data.button,
		// The server says which orders need it: those have no other payment method.
		canMakePayment: () => true,
		// A cart that needs the notice requires `countersign`: no other way to pay, and no express button, declares it.
		// The others are what WooCommerce Subscriptions requires.
		supports: { features: [ 'products', 'subscriptions', 'multiple_subscriptions', 'countersign' ] },
	} );
} )( window.wc, window.wp );
